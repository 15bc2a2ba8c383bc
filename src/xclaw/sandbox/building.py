"""All backends that this installation has."""

from xclaw.contracts.sandbox import SandboxBackend
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.container.backend import ContainerBackend
from xclaw.sandbox.host import HostBackend
from xclaw.sandbox.kvm.backend import KvmBackend
from xclaw.sandbox.settings import SandboxSettings


def backends(settings: SandboxSettings) -> tuple[SandboxBackend, ...]:
    """One of each, the strongest first; last those that are used by explicit choice only. Nothing is started."""
    return (
        KvmBackend(settings),
        BubblewrapBackend(settings),
        ContainerBackend(settings),
        KvmBackend(settings, "tcg"),
        HostBackend(),
    )
