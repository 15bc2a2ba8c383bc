"""What sandboxes may use when nobody says otherwise, and how many there are."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from xclaw.contracts.sandbox import SandboxChoice, SandboxPolicy


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """One policy for all sandboxes, as plain values, and the bounds of what keeps them."""

    backend: SandboxChoice = "auto"
    """What keeps commands in; "auto": the strongest that works here. Never something weaker than this says."""
    network: tuple[str, ...] = ()
    """Hosts that commands may reach, as "name" or "name:port"; none: there is no network."""
    cpus: float = 1.0
    memory_bytes: int = 536_870_912
    """Of all processes of a sandbox together."""
    processes: int = 128
    disk_bytes: int = 536_870_912
    """Of what commands add to /workspace and /tmp together."""
    output_bytes: int = 10_000_000
    """Of one command; what is beyond is read and dropped."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables beside PATH, HOME, LANG and what keeps programs from asking."""
    timeout_s: float = 60.0
    """Of a command, when its call does not say."""
    max_timeout_s: float = 600.0
    """Of a command, whatever its call says."""
    pool_size: int = 0
    """Sandboxes that are kept warm; worth it for virtual machines only."""
    max_open: int = 8
    """Sandboxes at once; who wants a further one waits."""
    image_dir: str = ""
    """Where images of virtual machines lie; empty: in the home's cache."""
    uid_base: int = 70_000
    """As root, each sandbox runs as a user id of its own, the first free one from here."""
    boot_timeout_s: float = 30.0
    """How long a sandbox may take to be ready."""

    def policy(self) -> SandboxPolicy:
        """The policy that these values make."""
        return SandboxPolicy(
            network=self.network,
            cpus=self.cpus,
            memory_bytes=self.memory_bytes,
            processes=self.processes,
            disk_bytes=self.disk_bytes,
            output_bytes=self.output_bytes,
            environment=tuple(sorted(self.environment.items())),
        )
