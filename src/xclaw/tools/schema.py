"""From a Python function to what a model is told of it, and back from arguments to a call."""

import inspect
import re
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Union, cast

import msgspec

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.tools import ToolContext

WIRE_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""What providers take as the name of a tool."""

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
_ARGUMENT_SECTIONS = ("Args", "Arguments", "Parameters")
_ITEM_INDENT = 4
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns|Raises|Yields|Example|Examples|Note|Notes):$")
_GOOGLE_ITEM = re.compile(r"^(\w+)(?:\s*\([^)]*\))?:\s*(.*)$")
_SPHINX_OTHER = re.compile(r"^:(returns?|rtype|raises?|type)\b.*:")
_SPHINX_ITEM = re.compile(r"^:param\s+(?:[^:]*\s)?(\w+):\s*(.*)$")


@dataclass(frozen=True, slots=True)
class FunctionSchema:
    """How a function is called with JSON arguments."""

    description: str
    parameters: dict[str, object]
    arguments: type[msgspec.Struct]
    text_parameters: frozenset[str]
    """Parameters for text only: another JSON value is handed to them as its JSON text."""
    context_parameter: str
    """The parameter that gets the `ToolContext`; empty when there is none. A model never sees it."""

    def keywords(self, arguments: Mapping[str, object], context: ToolContext) -> dict[str, object]:
        """The keyword arguments of a call. Raises `ToolFailed` for what does not fit the types."""
        written = {
            name: _as_text(value) if name in self.text_parameters else value
            for name, value in arguments.items()
        }
        try:
            values = msgspec.convert(written, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise ToolFailed(f"wrong arguments: {error}") from error
        given = {name: cast(object, getattr(values, name)) for name in values.__struct_fields__}
        given = {name: value for name, value in given.items() if value is not msgspec.UNSET}
        if self.context_parameter:
            given[self.context_parameter] = context
        return given


def schema_of(function: Callable[..., object]) -> FunctionSchema:
    """Read a signature and a docstring (Google or Sphinx style).

    Raises `UsageError` for parameters that JSON arguments cannot fill.
    """
    name = str(getattr(function, "__name__", repr(function)))
    hints = _hints(name, function)
    summary, documented = _read_docstring(inspect.getdoc(function) or "")
    context_parameter = ""
    texts: set[str] = set()
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for parameter in inspect.signature(function).parameters.values():
        hint = hints.get(parameter.name, object)
        if hint is ToolContext:
            context_parameter = parameter.name
            continue
        if parameter.kind not in _NAMED:
            raise UsageError(f"{name}: parameter {parameter.name!r} must be a plain, named one")
        if _plain(hint) in (str, str | None):
            texts.add(parameter.name)
        fields.append(_field(parameter, hint, documented.get(parameter.name, "")))
    arguments = msgspec.defstruct("arguments", fields, kw_only=True, forbid_unknown_fields=True)
    parameters = _json_schema(name, arguments)
    return FunctionSchema(summary, parameters, arguments, frozenset(texts), context_parameter)


def _field(
    parameter: inspect.Parameter, hint: object, text: str
) -> tuple[str, object] | tuple[str, object, object]:
    """A field of the arguments; what is left out stays unset, so the function's own default holds."""
    notes = [note for note in getattr(hint, "__metadata__", ()) if isinstance(note, str)]
    if notes or text:
        hint = Annotated[
            _plain(hint) if notes else hint, msgspec.Meta(description=notes[0] if notes else text)
        ]
    if parameter.default is inspect.Parameter.empty:
        return parameter.name, hint
    return parameter.name, Union[hint, msgspec.UnsetType], msgspec.UNSET  # noqa: UP007 - `hint` is a value


def _plain(hint: object) -> object:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _hints(name: str, function: Callable[..., object]) -> dict[str, object]:
    try:
        return dict(typing.get_type_hints(function, include_extras=True))
    except (NameError, TypeError) as error:
        raise UsageError(f"{name}: a type of its signature cannot be read: {error}") from error


def _json_schema(name: str, arguments: type[msgspec.Struct]) -> dict[str, object]:
    try:
        whole: dict[str, object] = msgspec.json.schema(arguments, schema_hook=_any_value)
    except TypeError as error:
        reason = str(error).splitlines()[-1]
        raise UsageError(f"{name}: a parameter has a type that JSON cannot fill: {reason}") from error
    definitions = cast(dict[str, dict[str, object]], whole["$defs"])
    schema = definitions.pop("arguments")
    del schema["title"]
    if definitions:
        schema["$defs"] = definitions
    for asked in cast(dict[str, dict[str, object]], schema["properties"]).values():
        choices = asked.get("enum")
        if isinstance(choices, list) and all(
            isinstance(choice, str) for choice in cast(list[object], choices)
        ):
            asked["type"] = "string"  # some providers refuse an enum without it
    return schema


def _any_value(kind: type) -> dict[str, object]:
    if kind is object:
        return {"description": "any JSON value"}
    raise NotImplementedError


def _as_text(value: object) -> object:
    if value is None or isinstance(value, str):
        return value
    return msgspec.json.encode(value).decode()


def _read_docstring(text: str) -> tuple[str, dict[str, str]]:
    """The part before the first section, and what is said of each parameter."""
    summary: list[str] = []
    documented: dict[str, str] = {}
    section = current = ""
    for line in text.splitlines():
        stripped = line.strip()
        sphinx = _SPHINX_ITEM.match(stripped)
        if found := _SECTION.match(stripped) or _SPHINX_OTHER.match(stripped):
            section, current = found[1], ""
        elif sphinx:
            section, current = "Args", sphinx[1]
            documented[current] = sphinx[2]
        elif not section:
            summary.append(stripped)
        elif section in _ARGUMENT_SECTIONS:
            current = _read_item(line, current, documented)
    return _unwrapped(summary), documented


def _read_item(line: str, current: str, documented: dict[str, str]) -> str:
    """Take one line of a list of parameters; answers the parameter that the next line may go on about."""
    item = _GOOGLE_ITEM.match(line.strip())
    if item and (not current or _indent(line) <= _ITEM_INDENT):
        documented[item[1]] = item[2]
        return item[1]
    if current and line.strip():
        documented[current] = f"{documented[current]} {line.strip()}".strip()
    return current


def _unwrapped(lines: list[str]) -> str:
    """Paragraphs as single lines: where the source was wrapped says nothing to a model."""
    paragraphs = "\n".join(lines).strip().split("\n\n")
    return "\n\n".join(" ".join(paragraph.split("\n")) for paragraph in paragraphs)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())
