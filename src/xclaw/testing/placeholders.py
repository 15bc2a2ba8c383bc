"""What a scripted reply may leave open: `{{delivery_dir}}`, `{{workspace}}`, `{{pointer:NAME}}` and `{{branch:N}}`.

They are read from the conversation: the headers of the task, and the absolute path that was last
mentioned and ends in NAME: a whole file name unless it starts with a dot or dash, and its later
versions too (`report.v2.md` for `report.md`). In a sandbox, where artifacts are named only,
`{{delivery_dir}}` is ".". `{{branch:2}}` is the second branch that results named. Anything else in double braces stays as it is.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

_PLACEHOLDER = re.compile(r"\{\{(delivery_dir|workspace|pointer:[^{}]+|branch:[1-9])\}\}")
_DELIVERY_DIR = re.compile(r"\[Shared delivery dir: ([^\]\n]+)\]")
_WORKSPACE = re.compile(r"\[Task workspace: ([^\]\n]+)\]")
_BRANCH = re.compile(r'"branch": "([^"]+)"')
_PATH_START = r"(?:/|[A-Za-z]:[\\/])"
_PATH_LETTER = r"[^\s\"'`<>|,;\[\]{}()]"


class Unfilled(Exception):
    """The conversation does not have what a placeholder asks for."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """What placeholders are read from: what others said so far, oldest first; not the model's own words."""

    texts: Sequence[str]

    def fill(self, text: str) -> str:
        """Replace each placeholder once, literally. Raises `Unfilled`."""
        if "{{" not in text:
            return text
        return _PLACEHOLDER.sub(lambda match: self._value(match.group(1)), text)

    def fill_all(self, value: object) -> object:
        """The same for every string in a JSON value; keys stay."""
        if isinstance(value, str):
            return self.fill(value)
        if isinstance(value, list):
            return [self.fill_all(item) for item in cast("list[object]", value)]
        if isinstance(value, dict):
            return {key: self.fill_all(item) for key, item in cast("dict[str, object]", value).items()}
        return value

    def _value(self, name: str) -> str:
        if name == "delivery_dir" and not self._has(_DELIVERY_DIR) and self._has(_WORKSPACE):
            return "."  # ./NAME is NAME
        if name == "delivery_dir":
            return self._last(_DELIVERY_DIR, name, "no message has a `[Shared delivery dir: ...]` header")
        if name == "workspace":
            return self._last(_WORKSPACE, name, "no message has a `[Task workspace: ...]` header")
        if name.startswith("branch:"):
            return self._branch(name, int(name.removeprefix("branch:")))
        file_name = name.removeprefix("pointer:")
        return self._last(
            _path_ending_in(file_name), name, f"no message names an absolute path ending in {file_name!r}"
        )

    def _branch(self, name: str, number: int) -> str:
        found = list(dict.fromkeys(branch for text in self.texts for branch in _BRANCH.findall(text)))
        if len(found) < number:
            raise Unfilled(
                f"the placeholder {{{{{name}}}}} cannot be filled: results named {len(found)} branches"
            )
        return found[number - 1]

    def _has(self, pattern: re.Pattern[str]) -> bool:
        return any(pattern.search(text) for text in self.texts)

    def _last(self, pattern: re.Pattern[str], name: str, reason: str) -> str:
        for text in reversed(self.texts):
            matches = list(pattern.finditer(text))
            if matches:
                found = matches[-1]
                return next(group for group in found.groups() if group is not None)
        raise Unfilled(f"the placeholder {{{{{name}}}}} cannot be filled: {reason}")


def has_placeholder(text: str) -> bool:
    return _PLACEHOLDER.search(text) is not None


def _path_ending_in(name: str) -> re.Pattern[str]:
    """A delivery's own line or a quoted path, where spaces may be, or a path in other text."""
    stem, dot, suffix = name.rpartition(".")
    versioned = rf"{re.escape(stem)}(?:\.v\d+)?{re.escape(dot + suffix)}" if stem else re.escape(name)
    end = (r"(?<=[\\/])" if name[0].isalnum() else "") + versioned
    return re.compile(
        rf"^delivered: ({_PATH_START}[^\n]*{end})$"
        rf"|\"({_PATH_START}[^\"\n]*{end})\""
        rf"|(?<![^\s\"'`(\[<:=])({_PATH_START}{_PATH_LETTER}*{end})(?!{_PATH_LETTER})",
        re.MULTILINE,
    )
