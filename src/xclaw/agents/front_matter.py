"""A Markdown file with front matter, read into values that know their lines.

Everything is bounded before YAML builds anything: size by the caller, nesting here; aliases, with
which a small text unfolds into a huge one, are refused.
"""

import re
from dataclasses import dataclass
from typing import Protocol

import yaml

from xclaw.contracts.errors import UsageError

MAX_DEPTH = 8
MAX_KEYS = 100

Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Nested:
    """A mapping, or a list with more than plain values in it: never looked into."""


Value = Scalar | list[Scalar] | Nested

_CLOSING = ("---", "...")
_FLAT_TEXT = re.compile(
    r"^(name|description)\s*:[ \t]+(?![\"'|>\[{&*!%@`])(.*:(?:\s.*)?|.*\s#.*)$", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Field:
    """One key as it was written, its value and the line of the file it is on."""

    key: str
    value: Value
    line: int


@dataclass(frozen=True, slots=True)
class Document:
    fields: tuple[Field, ...]
    body: str
    warnings: tuple[str, ...] = ()


def file_error(source: str, line: int, reason: str) -> UsageError:
    return UsageError(f"{source}:{line}: {reason}")


def parse_document(text: str, source: str) -> Document:
    """Split and read a file. Raises `UsageError` as "file:line: reason"."""
    lines = text.removeprefix("\ufeff").splitlines()
    if not lines or lines[0].rstrip() != "---":
        raise file_error(
            source,
            1,
            "the front matter is missing: start the file with a line `---`, then `name: ...` and "
            "`description: ...`, then another line `---`",
        )
    end = next((i for i, line in enumerate(lines) if i > 0 and line.rstrip() in _CLOSING), None)
    if end is None:
        raise file_error(source, len(lines), "the front matter is not closed: add a line `---` after it")
    body = "\n".join(lines[end + 1 :]).strip()
    node, warnings = _compose(lines[1:end], source)
    return Document(_fields(node, source), body, warnings)


def _compose(lines: list[str], source: str) -> tuple[yaml.Node | None, tuple[str, ...]]:
    """The YAML tree. A description with ": " in it and no quotes, which other tools accept, is read as text."""
    try:
        return _compose_strictly("\n".join(lines), source), ()
    except UsageError as error:
        quoted = [_quote_flat_text(line) for line in lines]
        if quoted == lines:
            raise
        try:
            node = _compose_strictly("\n".join(quoted), source)
        except UsageError:
            raise error from None
    changed = next(i for i, line in enumerate(lines) if quoted[i] != line)
    key = lines[changed].split(":", 1)[0].strip()
    return node, (f"{source}:{changed + 2}: `{key}` has a colon in it and no quotes; read as plain text",)


def _quote_flat_text(line: str) -> str:
    match = _FLAT_TEXT.match(line)
    if match is None:
        return line
    text = match.group(2).strip().replace("'", "''")
    return f"{match.group(1)}: '{text}'"


def _compose_strictly(text: str, source: str) -> yaml.Node | None:
    try:
        _check_events(yaml.SafeLoader(text), source)
        return yaml.SafeLoader(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = mark.line + 2 if mark else 1
        raise file_error(source, line, f"not valid YAML: {error.problem or error.context}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 2
        raise file_error(source, line, f"not valid YAML: {error.reason}") from None
    except yaml.YAMLError as error:
        raise file_error(source, 1, f"not valid YAML: {' '.join(str(error).split())[:200]}") from None


class _Events(Protocol):
    """The part of a YAML loader that its stubs leave untyped."""

    def check_event(self) -> bool: ...

    def get_event(self) -> yaml.Event: ...


def _check_events(loader: _Events, source: str) -> None:
    depth = 0
    while loader.check_event():
        event = loader.get_event()
        line: int = event.start_mark.line + 2 if event.start_mark else 1
        if isinstance(event, yaml.AliasEvent):
            raise file_error(source, line, f"the alias `*{event.anchor}` is not allowed; write the value out")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if depth > MAX_DEPTH:
                raise file_error(source, line, f"values are nested more than {MAX_DEPTH} deep")
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1


def _fields(node: yaml.Node | None, source: str) -> tuple[Field, ...]:
    if node is None:
        return ()
    if not isinstance(node, yaml.MappingNode):
        raise file_error(source, 2, "the front matter must be `key: value` lines")
    if len(node.value) > MAX_KEYS:
        raise file_error(source, 2, f"the front matter has more than {MAX_KEYS} keys")
    fields: list[Field] = []
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 2
        if not isinstance(key_node, yaml.ScalarNode):
            raise file_error(source, line, "a key must be a plain word")
        fields.append(Field(str(key_node.value), _value(value_node, str(key_node.value), source), line))
    return tuple(fields)


def _value(node: yaml.Node, key: str, source: str) -> Value:
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, key, source)
    if isinstance(node, yaml.SequenceNode):
        items: list[Scalar] = []
        for item in node.value:
            if not isinstance(item, yaml.ScalarNode):
                return Nested()
            items.append(_scalar(item, key, source))
        return items
    return Nested()


def _scalar(node: yaml.ScalarNode, key: str, source: str) -> Scalar:
    text = str(node.value)
    try:
        match node.tag.rsplit(":", 1)[-1]:
            case "null":
                return None
            case "bool":
                return text.casefold() in ("true", "yes", "on")
            case "int":
                return int(text.replace("_", ""))
            case "float":
                return float(text.replace("_", ""))
            case _:
                return text
    except ValueError:
        line = node.start_mark.line + 2
        raise file_error(
            source, line, f"`{key}` has the number {text[:40]!r}, which cannot be read"
        ) from None
