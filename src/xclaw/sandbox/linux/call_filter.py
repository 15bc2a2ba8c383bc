"""The filter of system calls that every command runs behind, as the kernel reads it (standard library only).

What is not refused is allowed: programs of all kinds must run. Refused is what reaches around the
namespaces, what makes files that give their user's rights to others, and what nothing would count.
"""

import struct
from collections.abc import Sequence

from xclaw.sandbox.linux import system_calls

_LOAD, _EQUAL, _AT_LEAST, _BITS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE = 0, 4

_ALLOW = 0x7FFF0000
_KILL = 0x80000000
_ERROR = 0x00050000
_EPERM, _ENOSYS, _EPROTONOSUPPORT, _EOPNOTSUPP, _EAFNOSUPPORT = 1, 38, 93, 95, 97

_NEW_NAMESPACE = 0x7E020000
_OTHERS_RIGHTS = 0o6000
"""Set-user-id and set-group-id."""
_CREATES = 0x400040
"""O_CREAT and what makes O_TMPFILE."""
_TERMINAL_INPUT = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX: typing into somebody's terminal."""
_ALLOCATING = (0x40305828, 0x4030582A, 0x40305839)
"""FS_IOC_RESVSP and its like: what `fallocate` does, by another name."""
_UNIX, _INET, _INET6, _NETLINK = 1, 2, 10, 16
_PROTOCOLS = (0, 1, 6, 17, 58)
"""ICMP, TCP, UDP. Asking for another may load a module into the kernel."""
_THREAD, _SAME_FILES = 0x1_0000, 0x400
_OWN_FILES = 2
"""Of `close_range`: first a table of descriptors of its own."""

_MACHINES = ("x86_64", "aarch64")
Step = bytes


def has_filter(machine: str) -> bool:
    """Whether there is a filter for this kind of machine."""
    return machine in _MACHINES


def filter_program(machine: str, *, counted: bool, timed: bool) -> bytes:
    """The filter for a machine; `counted`, `timed`: a control group bounds memory, processor time.

    Raises:
        KeyError: there is none for this machine.
    """
    architecture = system_calls.ARCHITECTURES[machine]
    index = _MACHINES.index(machine)
    refused = {**system_calls.REFUSED}
    if not counted:
        refused.update(system_calls.UNCOUNTED)
    if not timed:
        refused.update(system_calls.PLACING)
    code = [
        _step(_LOAD, _ARCHITECTURE),
        _step(_EQUAL, architecture, yes=1),
        _step(_RETURN, _KILL),
        _step(_LOAD, _NUMBER),
        _step(_AT_LEAST, system_calls.FIRST_UNKNOWN, no=1),  # the x32 calls, too, are up there
        _step(_RETURN, _ERROR | _ENOSYS),
    ]
    for numbers in refused.values():
        code += _on(numbers[index], [_step(_RETURN, _ERROR | _EPERM)])
    for numbers in system_calls.MISSING.values():
        code += _on(numbers[index], [_step(_RETURN, _ERROR | _ENOSYS)])
    for numbers in system_calls.UNSUPPORTED.values():
        code += _on(numbers[index], [_step(_RETURN, _ERROR | _EOPNOTSUPP)])
    code += _on(system_calls.CLONE[index], _cloning())
    code += _on(system_calls.CLOSE_RANGE[index], _refuse_bits(2, _OWN_FILES))
    code += _on(system_calls.IOCTL[index], _refuse_values(1, (*_TERMINAL_INPUT, *_ALLOCATING)))
    for numbers in system_calls.SOCKETS.values():
        code += _on(numbers[index], _families())
    for *numbers, mode in system_calls.MODES.values():
        code += _on(numbers[index], _refuse_bits(mode, _OTHERS_RIGHTS))
    for *numbers, flags, mode in system_calls.OPENING.values():
        code += _on(numbers[index], _refuse_bits(mode, _OTHERS_RIGHTS, when=(flags, _CREATES)))
    return b"".join([*code, _step(_RETURN, _ALLOW)])


def _on(number: int | None, block: Sequence[Step]) -> list[Step]:
    """A block for one call. It ends with a return, since it may load over the number."""
    return [] if number is None else [_step(_EQUAL, number, no=len(block)), *block]


def _refuse_bits(argument: int, bits: int, when: tuple[int, int] | None = None) -> list[Step]:
    """Refuse if any of the bits is set; with `when` only if any bit of that other argument is."""
    check = [
        _load_argument(argument),
        _step(_BITS, bits, no=1),
        _step(_RETURN, _ERROR | _EPERM),
        _step(_RETURN, _ALLOW),
    ]
    if when is None:
        return check
    return [_load_argument(when[0]), _step(_BITS, when[1], yes=1), _step(_RETURN, _ALLOW), *check]


def _refuse_values(argument: int, values: Sequence[int]) -> list[Step]:
    code = [_load_argument(argument)]
    for value in values:
        code += [_step(_EQUAL, value, no=1), _step(_RETURN, _ERROR | _EPERM)]
    return [*code, _step(_RETURN, _ALLOW)]


def _cloning() -> list[Step]:
    """No namespaces, and no threads with descriptors of their own: nobody would look at those."""
    return [
        _load_argument(0),
        _step(_BITS, _NEW_NAMESPACE, no=1),
        _step(_RETURN, _ERROR | _EPERM),
        _step(_BITS, _THREAD, yes=1),
        _step(_RETURN, _ALLOW),
        _step(_BITS, _SAME_FILES, yes=1),
        _step(_RETURN, _ERROR | _EPERM),
        _step(_RETURN, _ALLOW),
    ]


def _families() -> list[Step]:
    """Sockets that stay within the sandbox's own network: not of virtual machines, cards or ciphers."""
    known = len(_PROTOCOLS)
    return [
        _load_argument(0),
        _step(_EQUAL, _UNIX, yes=6),
        _step(_EQUAL, _INET, yes=6),
        _step(_EQUAL, _INET6, yes=5),
        _step(_EQUAL, _NETLINK, no=2),
        _load_argument(2),
        _step(_EQUAL, 0, yes=1),  # addresses and routes; nothing else of the kernel
        _step(_RETURN, _ERROR | _EAFNOSUPPORT),
        _step(_RETURN, _ALLOW),
        _load_argument(2),
        *(_step(_EQUAL, number, yes=known - place) for place, number in enumerate(_PROTOCOLS)),
        _step(_RETURN, _ERROR | _EPROTONOSUPPORT),
        _step(_RETURN, _ALLOW),
    ]


def _load_argument(index: int) -> Step:
    return _step(_LOAD, 16 + 8 * index)


def _step(code: int, value: int, *, yes: int = 0, no: int = 0) -> Step:
    return struct.pack("HBBI", code, yes, no, value)
