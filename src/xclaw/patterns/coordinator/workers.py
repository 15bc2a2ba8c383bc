"""Who may be given a part of the work."""

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.spawn import Spawn
from xclaw.patterns.children import known_agent, unknown_agent

VERIFIER = "verifier"
"""Checks what others made, and makes nothing itself."""


def worker(spawn: Spawn, name: str, place: str) -> str:
    """The worker that was meant. Raises `ToolFailed` for nobody, an orchestrator, and who verifies."""
    agent = known_agent(spawn, name, place)
    if agent not in spawn.agents():
        raise ToolFailed(f"{place}: {agent} hands work out itself. {unknown_agent(spawn, agent)}")
    if agent == VERIFIER:
        raise ToolFailed(f"{place}: {VERIFIER} only checks what others made; choose another agent")
    return agent
