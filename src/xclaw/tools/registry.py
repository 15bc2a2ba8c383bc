"""The tools there are, by name."""

import difflib
import re
import unicodedata
from collections.abc import Iterable, Sequence

from xclaw.contracts.errors import UsageError
from xclaw.contracts.tools import Tool, ToolSet
from xclaw.tools.schema import WIRE_NAME

_PREFIX = re.compile(r"^(?:(?:functions?|tools?|default_api)[.:/])+", re.IGNORECASE)
_DEBRIS = " \t\r\n\"'`“”‘’«»()[]{}<>/|*,;:.=@"
_LONGEST_NAME = 256
"""A longer text is no tool name with something around it."""


class ToolRegistry:
    """Names to tools. `builtins` can be neither replaced nor shadowed, also not by a similar name."""

    def __init__(self, builtins: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        self._folded: dict[str, str] = {}
        for tool in builtins:
            self.add(tool)

    def add(self, tool: Tool) -> None:
        """Raises `UsageError` for a name that is taken or that no provider would accept."""
        name = tool.spec.name
        if not WIRE_NAME.fullmatch(name):
            raise UsageError(f"the tool name {name!r} must be 1 to 64 of A-Z a-z 0-9 _ -")
        other = self._folded.get(_folded(name))
        if other is not None:
            raise UsageError(f"the tool name {name!r} is taken by {other!r}; give the new tool another name")
        self._tools[name] = tool
        self._folded[_folded(name)] = name

    def names(self) -> tuple[str, ...]:
        return tuple(self._tools)

    def select(self, names: Sequence[str]) -> ToolSet:
        """The tools of these names that exist, in this order. A run that is resumed
        after a tool was turned off goes on without it; `missing` tells which that are."""
        return {name: self._tools[name] for name in names if name in self._tools}

    def missing(self, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The names that no tool has, each with names that may have been meant."""
        return {
            name: tuple(difflib.get_close_matches(name, self._tools, n=3))
            for name in names
            if name not in self._tools
        }

    def resolve(self, written: str) -> Tool | None:
        """The tool a model meant by a name with debris around it; None when that is not certain."""
        name = self.resolve_name(written)
        return self._tools[name] if name is not None else None

    def resolve_name(self, written: str) -> str | None:
        """Quotes, brackets, `functions.`, case, `-` for `_` and full-width letters are seen through."""
        if written in self._tools:
            return written
        if len(written) > _LONGEST_NAME:
            return None
        plain = unicodedata.normalize("NFKC", written).strip(_DEBRIS)
        return self._folded.get(_folded(_PREFIX.sub("", plain)))


def _folded(name: str) -> str:
    return name.casefold().replace("-", "_")
