"""The ground that a keeper stands on (standard library only): a user id of its own, and a view of the file
system in which that user reaches what is the sandbox's.

As root nothing of a sandbox runs as root: bubblewrap run by root leaves files with root's rights behind and
opens the kernel's settings. In a user namespace of its own the keeper keeps the right to look into what its
commands have closed; no command inherits it.
"""

import contextlib
import fcntl
import os
import resource
import signal
import socket
import stat
import struct
from collections.abc import Sequence
from pathlib import Path

from xclaw.sandbox.linux import calls

UIDS = 5_000
"""How many ids from the first are tried."""
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER, _PR_SET_PDEATHSIG = 4, 36, 1
_SIOCGIFFLAGS, _SIOCSIFFLAGS, _UP = 0x8913, 0x8914, 1
_PLACE = "/tmp"
"""In the keeper's own view: where directories are bound to that only root could reach. It hides the host's."""

_BOUNDS = {
    "max_inotify_instances": 32,
    "max_inotify_watches": 16_384,
    "max_fanotify_groups": 0,
    "max_fanotify_marks": 0,
}
"""Of what a user has a number of: what a sandbox used up the user outside would not have any more."""


def adopt_orphans() -> None:
    calls.control_process(_PR_SET_CHILD_SUBREAPER, 1)


def die_with_parent(parent: int, number: int) -> None:
    """Get a signal when the parent ends; at once if it has already. Raises `OSError`."""
    calls.control_process(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os._exit(1)


def woken_by_children() -> int:
    """A descriptor that can be read when a child has ended. It never blocks."""
    woken, waking = os.pipe()
    for descriptor in (woken, waking):
        os.set_blocking(descriptor, False)
    signal.set_wakeup_fd(waking, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    return woken


def claim_uid(first: int) -> tuple[int, socket.socket]:
    """A user id that nobody is and nobody else has claimed; it is kept as long as the socket is open.

    Raises:
        OSError: there is none.
    """
    used = _uids_in_use()
    for uid in range(first, first + UIDS):
        if uid in used:
            continue
        claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            claim.bind(f"\0xclaw-sandbox-uid-{uid}")
        except OSError:
            claim.close()
            continue
        return uid, claim
    raise OSError(f"none of the user ids from {first} to {first + UIDS} is free; set sandbox.uid_base")


def _uids_in_use() -> set[int]:
    used: set[int] = set()
    with contextlib.suppress(OSError):
        for line in Path("/etc/passwd").read_text("utf-8", "replace").splitlines():
            parts = line.split(":")
            if len(parts) > 2 and parts[2].isdigit():
                used.add(int(parts[2]))
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                used.add(entry.stat().st_uid)
    return used


def own_view(sources: Sequence[str]) -> list[str]:
    """Leave the host's view of the file system; answers where the sources, in order, are in the new one.

    Raises:
        OSError: this process may not.
    """
    calls.own_mounts()
    held = [os.open(source, os.O_PATH | os.O_CLOEXEC) for source in sources]
    calls.mount("tmpfs", _PLACE, "tmpfs", calls.NOSUID | calls.NODEV, "size=64k,mode=0755")
    places: list[str] = []
    for index, descriptor in enumerate(held):
        place = f"{_PLACE}/{index}"
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            Path(place).mkdir()
        else:
            Path(place).touch()
        calls.bind(descriptor, place)
        os.close(descriptor)
        places.append(place)
    return places


def become(uid: int) -> None:
    """Give up being root, for good. Raises `OSError`."""
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def bound(limit: int, value: int) -> None:
    """Bound this process and what it becomes by one of `resource.RLIMIT_*`, or by less where less is allowed."""
    _, hard = resource.getrlimit(limit)
    least = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(limit, (least, least))


def own_users(*, network: bool) -> bool:
    """Enter a user namespace, and a network namespace if asked, as the same user with the rights of its owner.
    False where that is not allowed."""
    uid, gid = os.getuid(), os.getgid()
    calls.control_process(_PR_SET_DUMPABLE, 1)  # who has changed its id may not write its own maps otherwise
    try:
        calls.unshare(calls.NEW_USER | (calls.NEW_NETWORK if network else 0), "users of its own")
    except OSError:
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    for name, bound in _BOUNDS.items():
        with contextlib.suppress(OSError):  # not every kernel has all
            Path("/proc/sys/user", name).write_text(str(bound))
    return True


def listen_inside(port: int) -> socket.socket:
    """In the network of `own_users`: switch on its only interface and listen there. Raises `OSError`."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        request = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(asking.fileno(), _SIOCGIFFLAGS, request)
        flags = struct.unpack("16sh14x", answer)[1] | _UP
        fcntl.ioctl(asking.fileno(), _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.bind(("127.0.0.1", port))
    listening.listen(64)
    return listening
