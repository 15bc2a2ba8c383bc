"""Whether a sandbox that is wanted can be meant."""

import posixpath
from pathlib import Path

from xclaw.contracts.errors import SandboxUnavailable
from xclaw.contracts.sandbox import INPUT, WORKSPACE, SandboxSpec

_TAKEN = (
    WORKSPACE,
    INPUT,
    "/bin",
    "/dev",
    "/etc",
    "/lib",
    "/lib64",
    "/proc",
    "/sbin",
    "/sys",
    "/tmp",
    "/usr",
)


def checked_spec(spec: SandboxSpec) -> None:
    """Raises `SandboxUnavailable`: a directory that is none, a place that is taken."""
    for source in (spec.workspace, spec.input, *(mount.source for mount in spec.mounts)):
        if not Path(source).is_absolute() or not Path(source).is_dir():
            raise SandboxUnavailable(f"{source} is no directory")
    targets: set[str] = set()
    for mount in spec.mounts:
        target = mount.target
        if not target.startswith("/") or posixpath.normpath(target) != target or target == "/":
            raise SandboxUnavailable(f"{target!r} is no place in a sandbox: an absolute path without '..'")
        first = f"/{target.split('/')[1]}"
        if first in _TAKEN or target in targets:
            raise SandboxUnavailable(f"{target} is taken in a sandbox")
        targets.add(target)
