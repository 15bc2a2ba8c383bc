"""Calls of the kernel that Python has no functions for (standard library only). All raise `OSError`."""

import ctypes
import os

NEW_USER, NEW_NETWORK = 0x1000_0000, 0x4000_0000
BIND, NOSUID, NODEV = 4096, 2, 4
_NEW_MOUNTS = 0x20000
_RECURSIVE, _PRIVATE = 16384, 1 << 18
_libc = ctypes.CDLL(None, use_errno=True)


def control_process(option: int, value: int) -> None:
    """prctl(2)."""
    _checked(_libc.prctl(option, value, 0, 0, 0), "prctl")


def unshare(namespaces: int, what: str) -> None:
    """unshare(2); `what` that is, for the failure's text."""
    _checked(_libc.unshare(namespaces), what)


def own_mounts() -> None:
    """Leave the host's view of the file system: what is mounted from now on only this process and what it
    starts can see."""
    unshare(_NEW_MOUNTS, "a view of the file system of its own")
    mount("none", "/", "", _RECURSIVE | _PRIVATE)


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    """mount(2)."""
    code = _libc.mount(
        os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), options.encode()
    )
    _checked(code, f"mount {target}")


def bind(descriptor: int, target: str) -> None:
    """Make what was opened, with everything mounted below it, appear at `target`."""
    mount(f"/proc/self/fd/{descriptor}", target, "", BIND | _RECURSIVE)


def _checked(code: int, what: str) -> None:
    if code != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
