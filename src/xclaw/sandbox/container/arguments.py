"""What podman is told: the container of one command."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass

from xclaw.contracts.sandbox import INPUT, WORKSPACE, Mount, SandboxPolicy
from xclaw.sandbox.linux.first import FIRST

LABEL = "xclaw-sandbox"
RUNTIME = ("--runtime", "runc", "--cgroup-manager", "cgroupfs")
"""The default runtime refuses machines that have both kinds of control groups."""
USERS = ("passwd", "group")
_OPEN_FILES = 1_024
_MASKED = ("/sys", "/run", "/etc/resolv.conf", "/etc/hostname")
"""What podman puts there, and nobody needs."""
_FILTERED = """
import base64, ctypes, os, sys
code = base64.b64decode(sys.argv[1])
held = ctypes.create_string_buffer(code, len(code))
class Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("code", ctypes.c_void_p)]
program = Program(len(code) // 8, ctypes.addressof(held))
if ctypes.CDLL(None).prctl(22, 2, ctypes.byref(program), 0, 0) != 0:
    sys.exit("the filter of system calls is refused")
os.execv(sys.argv[2], sys.argv[2:])
"""
"""The first program: it puts the same filter on as other sandboxes have, beside podman's own."""
_MORE_S = 30
"""How long after its time-out podman ends a command by itself, should everybody else be gone."""


@dataclass(frozen=True, slots=True)
class Container:
    """What stays the same for all commands of a sandbox."""

    name: str
    root: str
    workspace: str
    input: str
    temporary: str
    users: str
    """Directory with the files `USERS` of /etc."""
    filter: bytes
    """Of system calls, as the kernel reads it."""
    mounts: tuple[Mount, ...]
    uid: int
    policy: SandboxPolicy


def run_arguments(
    container: Container, number: int, timeout_s: float, environment: Sequence[tuple[str, str]]
) -> list[str]:
    """Everything after `podman` and in front of directory and command."""
    policy = container.policy
    memory = str(policy.memory_bytes)
    words = [
        *RUNTIME, "run", "--interactive", "--name", f"{container.name}-{number}",
        "--label", f"{LABEL}={container.name}", "--timeout", str(int(timeout_s) + _MORE_S),
        "--cgroup-parent", f"/{container.name}", "--network", "none", "--no-hosts", "--hostname", "sandbox", "--log-driver", "none",
        "--user", f"{container.uid}:{container.uid}", "--cap-drop", "all",
        "--security-opt", "no-new-privileges", "--security-opt", f"mask={':'.join(_MASKED)}",
        "--read-only", "--read-only-tmpfs=false", "--ipc", "private", "--pid", "private", "--uts", "private",
        "--memory", memory, "--memory-swap", memory, "--pids-limit", str(policy.processes),
        "--cpus", f"{policy.cpus:g}",
        "--ulimit", f"nofile={_OPEN_FILES}:{_OPEN_FILES}", "--ulimit", "core=0:0", "--ulimit", "msgqueue=0:0", "--ulimit", "sigpending=1024:1024",
        "--ulimit", f"nproc={policy.processes}:{policy.processes}",
        "--ulimit", f"fsize={policy.disk_bytes}:{policy.disk_bytes}",
        "--shm-size", "64m", "--preserve-fds", "1", "--workdir", "/", "--tz", "UTC",
    ]  # fmt: skip
    binds = [(container.workspace, WORKSPACE, "rw"), (container.temporary, "/tmp", "rw")]
    binds += [(container.input, INPUT, "ro")]
    binds += [(f"{container.users}/{name}", f"/etc/{name}", "ro") for name in USERS]
    binds += [(mount.source, mount.target, "ro") for mount in container.mounts]
    for source, target, access in binds:
        options = (
            f"type=bind,{_quoted(f'src={source}')},dst={target},{access}=true"
            if access == "ro"
            else (f"type=bind,{_quoted(f'src={source}')},dst={target}")
        )
        words += ["--mount", f"{options},bind-propagation=private"]
    pairs = [f"{name}={value}" for name, value in environment]
    return [
        *words, "--rootfs", f"{container.root}:O",
        "/usr/bin/env", "-i", *pairs, "/usr/bin/python3", "-I", "-S", "-c", _FILTERED,
        base64.b64encode(container.filter).decode(), "/bin/sh", "-c", FIRST, "sandbox", str(policy.processes),
    ]  # fmt: skip


def _quoted(field: str) -> str:
    """One field of a comma-separated line."""
    return '"' + field.replace('"', '""') + '"'
