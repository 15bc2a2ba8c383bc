"""The filter of system calls that podman is given: what bubblewrap's sandboxes refuse, too."""

import json
from collections.abc import Iterable

from xclaw.sandbox.bubblewrap import system_calls

_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NEW_NAMESPACE = 0x7E020000
_OTHERS_RIGHTS = 0o6000
_TERMINAL_INPUT = (0x5412, 0x541C)
_FAMILIES = 64
_ALLOWED_FAMILIES = (1, 2, 10, 16)

Rule = dict[str, object]


def profile() -> str:
    """JSON, as containers want it."""
    rules = [
        _refused([*system_calls.REFUSED, "setns", "unshare"], _EPERM),
        _refused(system_calls.MISSING, _ENOSYS),
        *(_bits("clone", 0, 1 << bit) for bit in range(32) if _NEW_NAMESPACE >> bit & 1),
        *(_value("ioctl", 1, value, _EPERM) for value in _TERMINAL_INPUT),
        *(
            _value("socket", 0, family, _EAFNOSUPPORT)
            for family in range(_FAMILIES)
            if family not in _ALLOWED_FAMILIES
        ),
    ]
    for name, (*_, mode) in system_calls.MODES.items():
        rules += [_bits(name, mode, 1 << bit) for bit in range(16) if _OTHERS_RIGHTS >> bit & 1]
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", "syscalls": rules})


def _refused(names: Iterable[str], number: int) -> Rule:
    return {"names": sorted(set(names)), "action": "SCMP_ACT_ERRNO", "errnoRet": number}


def _value(name: str, index: int, value: int, number: int) -> Rule:
    return {**_refused([name], number), "args": [{"index": index, "value": value, "op": "SCMP_CMP_EQ"}]}


def _bits(name: str, index: int, bit: int) -> Rule:
    """Refuse if the bit is set."""
    condition = {"index": index, "value": bit, "valueTwo": bit, "op": "SCMP_CMP_MASKED_EQ"}
    return {**_refused([name], _EPERM), "args": [condition]}
