"""All backends that this installation has."""

from xclaw.contracts.sandbox import SandboxBackend
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.container.backend import ContainerBackend
from xclaw.sandbox.environment import Pairs
from xclaw.sandbox.host import HostBackend
from xclaw.sandbox.kvm.backend import KvmBackend
from xclaw.sandbox.settings import SandboxSettings


def backends(settings: SandboxSettings, marks: Pairs = ()) -> tuple[SandboxBackend, ...]:
    """One of each, the strongest first; last those that are used by explicit choice only. Nothing is started.
    `marks` are variables by which commands that nothing keeps in are found."""
    return (
        KvmBackend(settings),
        BubblewrapBackend(settings),
        ContainerBackend(settings),
        KvmBackend(settings, "tcg"),
        HostBackend(marks),
    )
