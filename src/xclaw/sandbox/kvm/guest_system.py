"""The guest's system as its agent arranges it: directories, limits, the user that commands run as.

Standard library only; it is copied into the image and never imported from there.
"""

import base64
import ctypes
import os
import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

PLACE = Path("/xclaw")
CGROUP = PLACE / "cgroup" / "job"
_PERIOD_US = 100_000
_TMP_MORE = 8_388_608
_PASSWD = "sandbox:x:{uid}:{uid}::/workspace:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n"
_GROUP = "sandbox:x:{uid}:\nnogroup:x:65534:\n"
_MS_RDONLY, _MS_NOSUID, _MS_NODEV, _MS_REMOUNT, _MS_BIND = 1, 2, 4, 32, 4096
_MNT_DETACH = 2
_CAPABILITIES = 64
_PR_CAPBSET_DROP, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 24, 22, 38
_LIBC = ctypes.CDLL(None, use_errno=True)

Message = Mapping[str, object]


def _checked(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _mount(source: str, target: Path, kind: str, flags: int, data: str = "") -> None:
    result = _LIBC.mount(
        source.encode(), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode()
    )
    _checked(result, f"mount at {target}")


@dataclass
class Limits:
    """What holds for every job, once the machine has been taken."""

    uid: int = 65_534
    filter: bytes = b""
    """Seccomp program, as the kernel wants it; empty: none."""
    tmp_bytes: int = 1 << 40
    """Of what may lie in /tmp, which is memory."""


def share(places: list[dict[str, object]]) -> None:
    """Mount the host's directories: each is (part of) a tag, and comes to a place of its own."""
    mounted: dict[str, Path] = {}
    for place in places:
        tag, part, target = str(place["tag"]), str(place["part"]), Path(str(place["target"]))
        if tag not in mounted:
            mounted[tag] = PLACE / f"share-{len(mounted)}"
            mounted[tag].mkdir()
            _mount(
                tag,
                mounted[tag],
                "9p",
                _MS_NOSUID | _MS_NODEV,
                "trans=virtio,version=9p2000.L,msize=262144,cache=mmap,access=any",
            )
        target.mkdir(parents=True, exist_ok=True)
        flags = _MS_NOSUID | _MS_NODEV | (0 if place["writable"] else _MS_RDONLY)
        _mount(str(mounted[tag] / part), target, "none", _MS_BIND)
        _mount("none", target, "none", _MS_REMOUNT | _MS_BIND | flags)
    for where in mounted.values():
        _checked(_LIBC.umount2(os.fsencode(where), _MNT_DETACH), f"unmount {where}")


def take(message: Message) -> Limits:
    """Make the machine one task's own: its directories, its user, its limits."""
    share(cast("list[dict[str, object]]", message["places"]))
    _mount("none", Path("/tmp"), "none", _MS_REMOUNT | _MS_NOSUID | _MS_NODEV, f"size={_tmp_size(message)}")
    uid = int(str(message["uid"]))
    for name, text in (("passwd", _PASSWD), ("group", _GROUP)):
        (Path("/etc") / name).write_text(text.format(uid=uid))
    _mount("none", Path("/"), "none", _MS_REMOUNT | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    (CGROUP / "memory.max").write_text(str(message["memory"]))
    (CGROUP / "memory.oom.group").write_text("1")
    (CGROUP / "pids.max").write_text(str(message["processes"]))
    (CGROUP / "cpu.max").write_text(f"{message['cpu_us']} {_PERIOD_US}")
    return Limits(uid, base64.b64decode(str(message["filter"])), int(str(message["tmp"])))


def _tmp_size(message: Message) -> int:
    """More than may be used, so that going over the limit can be told from a full disk."""
    return int(str(message["tmp"])) + _TMP_MORE


def tmp_used() -> int:
    found = os.statvfs("/tmp")
    return (found.f_blocks - found.f_bfree) * found.f_frsize


def prepare() -> None:
    """The control group that jobs run in; the kernel's settings can be read only."""
    for name in ("sys", "bus", "irq", "sysrq-trigger"):
        path = Path("/proc") / name
        if path.exists():
            _mount(str(path), path, "none", _MS_BIND)
            _mount("none", path, "none", _MS_REMOUNT | _MS_BIND | _MS_RDONLY | _MS_NOSUID | _MS_NODEV)
    (PLACE / "cgroup" / "cgroup.subtree_control").write_text("+cpu +memory +pids")
    CGROUP.mkdir()


def kills() -> int:
    """How often the memory limit has killed."""
    for line in (CGROUP / "memory.events").read_text().splitlines():
        if line.startswith("oom_kill "):
            return int(line.split()[1])
    return 0


def drop_rights(limits: Limits) -> None:
    """From root to the unprivileged user, for good."""
    (CGROUP / "cgroup.procs").write_text("0")
    for bound in (resource.RLIMIT_CORE, resource.RLIMIT_MSGQUEUE):
        resource.setrlimit(bound, (0, 0))
    for bound in (resource.RLIMIT_NOFILE, resource.RLIMIT_SIGPENDING):
        resource.setrlimit(bound, (1024, 1024))
    for capability in range(_CAPABILITIES):
        _LIBC.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)  # those that this kernel does not know fail
    os.setgroups([])
    os.setresgid(limits.uid, limits.uid, limits.uid)
    os.setresuid(limits.uid, limits.uid, limits.uid)
    os.umask(0o022)
    _checked(_LIBC.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
    if limits.filter:
        program = ctypes.create_string_buffer(limits.filter, len(limits.filter))

        class Program(ctypes.Structure):
            _fields_ = (("length", ctypes.c_ushort), ("code", ctypes.c_void_p))

        held = Program(len(limits.filter) // 8, ctypes.addressof(program))
        _checked(_LIBC.prctl(_PR_SET_SECCOMP, 2, ctypes.byref(held), 0, 0), "seccomp")
