"""Whether a sandbox that is wanted, or a command in one, can be meant."""

import posixpath
from pathlib import Path

from xclaw.contracts.errors import SandboxUnavailable, ToolFailed
from xclaw.contracts.sandbox import (
    INPUT,
    WORKSPACE,
    BackendName,
    SandboxCommand,
    SandboxPolicy,
    SandboxSpec,
)
from xclaw.contracts.unicode_forms import is_unicode
from xclaw.sandbox.environment import checked
from xclaw.sandbox.files import absolute_inside

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


def refuse_network(policy: SandboxPolicy, backend: BackendName) -> None:
    """Of a backend that has none. Raises `SandboxUnavailable`."""
    if policy.network:
        raise SandboxUnavailable(
            f"the sandbox {backend!r} has no network at all, and some is allowed: {', '.join(policy.network)}. "
            'Leave `sandbox.network` empty, or set `sandbox.backend = "bubblewrap"`.'
        )


def checked_command(command: SandboxCommand) -> None:
    """Raises `ToolFailed` for what can be no command."""
    if not command.timeout_s > 0:
        raise ToolFailed(f"a time-out must be more than 0 seconds, not {command.timeout_s}")
    if not command.argv or not command.argv[0]:
        raise ToolFailed("there is no command")
    if not all(map(is_unicode, command.argv)):
        raise ToolFailed("the command holds characters that are no text")
    if any("\0" in word for word in command.argv):
        raise ToolFailed("the command holds characters that no command can hold, such as NUL")
    absolute_inside(command.directory)
    checked(command.environment)
