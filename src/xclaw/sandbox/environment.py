"""The environment of commands: nothing of the caller's, what programs need, what keeps them from asking."""

from collections.abc import Mapping

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.sandbox import WORKSPACE

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
QUIET: Mapping[str, str] = {
    "LANG": "C.UTF-8",
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "EDITOR": "false",
    "VISUAL": "false",
    "GIT_EDITOR": "false",
    "GIT_TERMINAL_PROMPT": "0",
    "DEBIAN_FRONTEND": "noninteractive",
}
"""Programs that would ask, page or edit fail at once instead."""
Pairs = tuple[tuple[str, str], ...]


def environment_inside(further: Pairs, home: str = WORKSPACE) -> dict[str, str]:
    """The environment in a sandbox, without what a single command adds."""
    return {"PATH": PATH, "HOME": home, **QUIET, **dict(further)}


def checked(pairs: Pairs) -> Pairs:
    """Raises `ToolFailed` for what no environment can hold."""
    for name, value in pairs:
        if not name or "=" in name or "\0" in name or "\0" in value:
            raise ToolFailed(f"{name[:40]!r} is no name of a variable, or its value holds NUL")
    return pairs
