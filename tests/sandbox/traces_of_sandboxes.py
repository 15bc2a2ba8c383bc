"""What sandboxes of namespaces leave on a machine, told by the names that their keepers carry."""

import os
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.sandbox import BackendName, Probe, Sandbox, SandboxSpec
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.bubblewrap.sandbox import BubblewrapSandbox
from xclaw.sandbox.linux.marks import MARK
from xclaw.sandbox.settings import SandboxSettings

HOMES = (Path("/var/tmp"), Path("/tmp"))


@dataclass(frozen=True)
class Made:
    """A sandbox that was started."""

    pid: int
    """Of its keeper."""
    name: str
    mounts: str
    """Its namespace of mounts."""


class WatchedBubblewrap:
    """The real backend; every sandbox that it starts is remembered."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._backend = BubblewrapBackend(settings)
        self.made: list[Made] = []
        self.by_task: dict[str, int] = {}

    @property
    def name(self) -> BackendName:
        return self._backend.name

    async def probe(self) -> Probe:
        return await self._backend.probe()

    async def start(self, spec: SandboxSpec) -> Sandbox:
        sandbox = await self._backend.start(spec)
        assert isinstance(sandbox, BubblewrapSandbox)
        self.made.append(made_of(sandbox.pid))
        self.by_task[spec.task_id] = sandbox.pid
        return sandbox


def made_of(pid: int) -> Made:
    place = Path(f"/proc/{pid}")
    marked = f"{MARK}=".encode()
    name = next(one for one in (place / "environ").read_bytes().split(b"\0") if one.startswith(marked))
    return Made(pid, name.removeprefix(marked).decode(), str((place / "ns" / "mnt").readlink()))


def left_of(made: Iterable[Made]) -> list[str]:
    """Processes, namespaces, directories and control groups."""
    names = {one.name for one in made}
    own_mounts = str(Path("/proc/self/ns/mnt").readlink())
    mounts = {one.mounts for one in made} - {own_mounts}
    left = [str(home / name) for home in HOMES for name in names if (home / name).exists()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                marks = {f"{MARK}={name}".encode() for name in names}
                if marks & set((entry / "environ").read_bytes().split(b"\0")):
                    left.append(f"process {entry.name}")
                if str((entry / "ns" / "mnt").readlink()) in mounts:
                    left.append(f"namespace of process {entry.name}")
    for directory, below, _ in os.walk("/sys/fs/cgroup"):
        left += [f"{directory}/{name}" for name in below if any(one in name for one in names)]
    return left
