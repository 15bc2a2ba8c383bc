"""What workflow scripts may use."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WorkflowSettings:
    max_agents: int = 64
    """Agents that one workflow may start, whatever it quotes."""
    script_chars: int = 40_000
    output_chars: int = 200_000
    """Of what a script answers, and of all that it logs."""
    timeout_s: float = 3_600.0
    """From its start to its end, waiting for agents included."""
    processor_s: int = 20
    """Processor time of the script itself; waiting costs none."""
    memory_bytes: int = 512_000_000
    """Address space of its interpreter."""
