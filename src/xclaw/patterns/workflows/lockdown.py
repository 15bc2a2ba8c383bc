"""Takes from an interpreter everything but what it has in memory and the three pipes it was born with
(standard library only). Four layers behind the check of the syntax, none of which trusts another:

1. bounds of the kernel: memory, processor time, no further file, no file content, no core;
2. no new privileges, and death with the parent;
3. a filter of system calls (Linux on x86_64 and aarch64): only what computing, waiting and the pipes need;
   anything else kills the process, whatever the interpreter was tricked into;
4. an audit hook, which ends the process when Python code reaches for anything.
"""

import contextlib
import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_SECCOMP_SET_MODE_FILTER = 1
_SECCOMP_FILTER_FLAG_TSYNC = 1
_KILL_PROCESS = 0x80000000
_ALLOW = 0x7FFF0000
_PROT_EXEC = 4
_M_ARENA_MAX = -8

_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _THIRD_ARGUMENT = 0, 4, 32
_X32 = 0x40000000

_MAPPING = ("mmap", "mprotect")
"""Allowed as long as the memory cannot be executed."""
_CALLS: dict[str, tuple[int, int, dict[str, int]]] = {
    # machine: AUDIT_ARCH, number of seccomp(2), the calls that are let through
    "x86_64": (
        0xC000003E,
        317,
        {
            "read": 0, "write": 1, "mmap": 9, "mprotect": 10, "munmap": 11, "brk": 12, "rt_sigaction": 13,
            "rt_sigprocmask": 14, "rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28,
            "exit": 60, "sigaltstack": 131, "futex": 202, "restart_syscall": 219, "clock_gettime": 228,
            "exit_group": 231, "getrandom": 318, "rseq": 334,
        },
    ),
    "aarch64": (
        0xC00000B7,
        277,
        {
            "read": 63, "write": 64, "exit": 93, "exit_group": 94, "futex": 98, "clock_gettime": 113,
            "sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134,
            "rt_sigprocmask": 135, "rt_sigreturn": 139, "brk": 214, "munmap": 215, "mremap": 216,
            "mmap": 222, "mprotect": 226, "madvise": 233, "getrandom": 278, "rseq": 293,
        },
    ),
}  # fmt: skip

Violated = Callable[[str], None]
"""Told which event ends the process. Never returns."""


def has_filter() -> bool:
    """Whether there is a filter of system calls for this machine."""
    return sys.platform == "linux" and platform.machine() in _CALLS


def prepare() -> None:
    """Before threads are started: one heap for all, since each of its own would count as used memory."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 1)


def lock_down(memory_bytes: int, processor_s: int, violated: Violated) -> "Hook":
    """All layers, for all threads of this process. Raises `OSError` when one cannot be laid."""
    _bound(memory_bytes, processor_s)
    if sys.platform == "linux":
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        _prctl(_PR_SET_NO_NEW_PRIVS, 1)
    if has_filter():
        _filter_calls()
    hook = Hook(violated)
    sys.path.clear()
    sys.meta_path.clear()
    sys.path_hooks.clear()
    sys.addaudithook(hook)
    return hook


class Hook:
    """Ends the process at the first event after `arm`. Reading a frame for an error's line is allowed
    after `disarm`, when no code of the script runs any more."""

    def __init__(self, violated: Violated) -> None:
        self._violated = violated
        self._armed = False
        self._expected = ""

    def arm(self) -> None:
        """From now on nothing is allowed but one `exec`, the script's start."""
        self._expected = "exec"
        self._armed = True

    def disarm(self) -> None:
        self._armed = False

    def __call__(self, event: str, arguments: object) -> None:
        if not self._armed:
            return
        if event == self._expected:
            self._expected = ""
            return
        self._violated(event)


def _bound(memory_bytes: int, processor_s: int) -> None:
    os.chdir("/")  # the directory it was started in is removed
    bounds = {
        "RLIMIT_AS": memory_bytes,
        "RLIMIT_CPU": processor_s,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": 3,
        "RLIMIT_NPROC": 0,
    }
    for name, value in bounds.items():
        with contextlib.suppress(ValueError):  # macOS knows some by name only
            resource.setrlimit(getattr(resource, name), (value, value))


def _prctl(option: int, value: int) -> None:
    if ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl failed")


def _filter_calls() -> None:
    architecture, seccomp, calls = _CALLS[platform.machine()]
    program = _program(architecture, calls)
    instructions = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.syscall(
        ctypes.c_long(seccomp),
        ctypes.c_uint(_SECCOMP_SET_MODE_FILTER),
        ctypes.c_uint(_SECCOMP_FILTER_FLAG_TSYNC),
        ctypes.create_string_buffer(described, len(described)),
    )
    if done != 0:
        raise OSError(ctypes.get_errno(), "seccomp failed")


def _program(architecture: int, calls: dict[str, int]) -> bytes:
    """The filter as the kernel reads it: an allow-list, everything else kills."""
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_JUMP_EQUAL, architecture, yes=1),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER),
        _step(_JUMP_AT_LEAST, _X32, no=1),
        _step(_RETURN, _KILL_PROCESS),
    ]
    for name, number in calls.items():
        if name in _MAPPING:
            code += [
                _step(_JUMP_EQUAL, number, no=4),
                _step(_LOAD, _THIRD_ARGUMENT),
                _step(_JUMP_BITS, _PROT_EXEC, no=1),
                _step(_RETURN, _KILL_PROCESS),
                _step(_RETURN, _ALLOW),
            ]
        else:
            code += [_step(_JUMP_EQUAL, number, no=1), _step(_RETURN, _ALLOW)]
    return b"".join([*code, _step(_RETURN, _KILL_PROCESS)])


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> bytes:
    return struct.pack("HBBI", code, yes, no, value)
