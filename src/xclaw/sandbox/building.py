"""All backends that this installation has."""

from xclaw.contracts.sandbox import SandboxBackend
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.host import HostBackend
from xclaw.sandbox.settings import SandboxSettings


def backends(settings: SandboxSettings) -> tuple[SandboxBackend, ...]:
    """One of each, the strongest first. Nothing is started."""
    return (BubblewrapBackend(settings), HostBackend())
