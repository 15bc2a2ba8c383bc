"""The client's own tools, and what it wants of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import msgspec

from xclaw.contracts.models import ToolSpec
from xclaw.gateway.protocols.openai.refused import Refused

MAX_TOOLS = 128
MAX_DESCRIPTION = 8_000
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

_MUST = "You must answer by calling {which}, without any other tool and without text instead."
_ONE = "Call at most one of the client's tools at a time."


class FunctionFields(msgspec.Struct):
    """`function` of a tool on the chat wire; the tool itself on the responses wire."""

    name: str
    description: str | None = None
    parameters: dict[str, object] | None = None


class WrittenTool(msgspec.Struct):
    """A tool of either wire."""

    type: str = "function"
    function: FunctionFields | None = None
    name: str | None = None
    description: str | None = None
    parameters: dict[str, object] | None = None
    strict: bool | None = None

    @property
    def fields(self) -> FunctionFields | None:
        """None for a tool that is no function."""
        if self.type != "function":
            return None
        if self.function is not None:
            return self.function
        return FunctionFields(self.name or "", self.description, self.parameters)


class ChosenName(msgspec.Struct):
    name: str = ""


class WrittenChoice(msgspec.Struct):
    """A `tool_choice` that is an object, of either wire."""

    type: str = "function"
    name: str = ""
    function: ChosenName | None = None
    mode: str = "auto"
    tools: list["WrittenChoice"] | None = None
    allowed_tools: "WrittenChoice | None" = None

    @property
    def chosen(self) -> str:
        return self.function.name if self.function is not None else self.name


@dataclass(frozen=True, slots=True)
class ToolOrder:
    """What the agent is given of the client's tools, and how it has to use them."""

    specs: tuple[ToolSpec, ...] = ()
    note: str = ""
    """What the agent is told of it."""
    must_call: bool = False
    """An answer without a call is none."""
    one_call: bool = False
    passed_over: tuple[str, ...] = ()
    """Types of tools that only OpenAI has."""


def tool_order(
    tools: Sequence[WrittenTool] | None, choice: str | WrittenChoice | None, *, parallel: bool
) -> ToolOrder:
    """Raises `Refused` for tools that cannot be offered and choices that cannot be met."""
    written = tools or ()
    if len(written) > MAX_TOOLS:
        raise Refused(f"tools: {len(written)} are too many; {MAX_TOOLS} are possible", param="tools")
    specs = tuple(_spec(fields, index) for index, tool in enumerate(written) if (fields := tool.fields))
    if len({spec.name for spec in specs}) < len(specs):
        raise Refused("tools: two of them have the same name", param="tools")
    passed_over = tuple(sorted({tool.type[:60] for tool in written if tool.fields is None}))
    mode, specs = _chosen(choice, specs)
    if mode == "none":
        return ToolOrder(passed_over=passed_over)
    if mode == "required" and not specs:
        raise Refused(
            "tool_choice: a call is required, and there is no function to call", param="tool_choice"
        )
    must_call = mode == "required"
    notes: list[str] = []
    if must_call:
        names = ", ".join(spec.name for spec in specs)
        notes.append(_MUST.format(which=f"the tool {names}" if len(specs) == 1 else f"one of: {names}"))
    if specs and not parallel:
        notes.append(_ONE)
    return ToolOrder(specs, "\n".join(notes), must_call, not parallel, passed_over)


def _chosen(
    choice: str | WrittenChoice | None, specs: tuple[ToolSpec, ...]
) -> tuple[str, tuple[ToolSpec, ...]]:
    """The mode (auto, none, required), and the tools that are left."""
    match choice:
        case None:
            return "auto", specs
        case "auto" | "none" | "required":
            return choice, specs
        case "any":  # what other makers call it
            return "required", specs
        case WrittenChoice(type="function"):
            return "required", _named((choice.chosen,), specs)
        case WrittenChoice(type="allowed_tools"):
            allowed = choice.allowed_tools or choice
            names = tuple(tool.chosen for tool in allowed.tools or ())
            mode = "required" if allowed.mode == "required" else "auto"
            return mode, _named(names, specs)
        case _:
            what = choice.type if isinstance(choice, WrittenChoice) else choice
            raise Refused(f"tool_choice: {what[:60]!r} is not supported", param="tool_choice")


def _named(names: Sequence[str], specs: tuple[ToolSpec, ...]) -> tuple[ToolSpec, ...]:
    known = {spec.name: spec for spec in specs}
    for name in names:
        if name not in known:
            raise Refused(f"tool_choice: there is no function {name[:64]!r} in tools", param="tool_choice")
    return tuple(known[name] for name in dict.fromkeys(names))


def _spec(fields: FunctionFields, index: int) -> ToolSpec:
    param = f"tools[{index}]"
    if not _NAME.match(fields.name):
        raise Refused(
            f"{param}: {fields.name[:64]!r} cannot name a function: 1 to 64 of A-Z a-z 0-9 _ -", param=param
        )
    parameters: dict[str, object] = dict(fields.parameters or {})
    if parameters.setdefault("type", "object") != "object":
        raise Refused(f"{param}: parameters has to be a JSON Schema of type object", param=param)
    if not isinstance(parameters.setdefault("properties", {}), dict):
        raise Refused(f"{param}: parameters.properties has to be an object", param=param)
    return ToolSpec(fields.name, (fields.description or "")[:MAX_DESCRIPTION], parameters)


def sent_arguments(arguments: str) -> str:
    """A call's arguments as clients can read them: none at all are an empty object."""
    text = arguments.strip()
    return "{}" if text in ("", "null") else arguments


def are_whole(arguments: str) -> bool:
    """Whether they are JSON of an object, and not the beginning of it."""
    try:
        return isinstance(cast("object", msgspec.json.decode(arguments)), dict)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return False
