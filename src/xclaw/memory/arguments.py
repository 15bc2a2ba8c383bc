"""Arguments of this room's tools, as models write them, and the errors that tell them what is wrong."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.memory import Whose
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.permissions import Effect
from xclaw.contracts.scope import current_scope
from xclaw.contracts.tools import ToolContext, ToolOutput

_SHOWN = 60


Answers = Callable[[Mapping[str, object], ToolContext], Awaitable[str]]
"""What a tool does. Raises `UsageError` or `ToolFailed` for what the model can act on."""


@dataclass(frozen=True, slots=True)
class StoreTool:
    """A tool over something stored. The same call again finds what it had stored, so all are replayable.

    A cancelled call may still have stored what it was to store.
    """

    spec: ToolSpec
    answer: Answers
    replayable: bool = True
    timeout_s: float | None = 60.0

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        try:
            return ToolOutput(await self.answer(arguments, context))
        except UsageError as error:
            raise ToolFailed(str(error)) from error


Locate = Callable[[ToolContext], Whose]
"""Whose memory and which conversation's scratchpad a call may touch."""


def whose_run(context: ToolContext) -> Whose:
    """Told by the scope that the runtime set around the run, never by the call's arguments.

    A tree that belongs to no conversation shares by its root; a call outside any run by its session.
    """
    scope = current_scope.get()
    if scope is None:
        return Whose(conversation=context.session_id)
    return Whose(scope.user, scope.conversation or scope.root_id)


def key_of(context: ToolContext) -> str:
    """The same for the same call after a crash, and for no other."""
    return f"{context.run_id}\0{context.call_id}"


def text_of(arguments: Mapping[str, object], name: str) -> str:
    """A text that must be there and not be blank."""
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        what = "is missing" if value is None else "must be text and not empty"
        raise ToolFailed(f"`{name}` {what}")
    return value


def number_of(arguments: Mapping[str, object], name: str, default: int, least: int, most: int) -> int:
    """A whole number within bounds; as text too."""
    return optional_number(arguments, name, least, most) or default


def optional_number(arguments: Mapping[str, object], name: str, least: int, most: int) -> int | None:
    """The same, or None where it is left out."""
    value = arguments.get(name)
    if value is None or value == "":
        return None
    try:
        number = int(cast("str", value)) if not isinstance(value, bool) else least - 1
    except (TypeError, ValueError, OverflowError):
        number = least - 1
    if not least <= number <= most:
        raise ToolFailed(
            f"`{name}` must be a whole number from {least} to {most}, not {str(value)[:_SHOWN]!r}"
        )
    return number


def choice_of(arguments: Mapping[str, object], name: str, choices: tuple[str, ...]) -> str:
    """One of the choices; the first where it is left out."""
    value = arguments.get(name)
    if value is None or value == "":
        return choices[0]
    written = str(value).strip().casefold()
    if written not in choices:
        raise ToolFailed(f"`{name}` must be one of {', '.join(choices)}, not {str(value)[:_SHOWN]!r}")
    return written


def spec(
    name: str,
    description: str,
    properties: dict[str, object],
    required: tuple[str, ...] = (),
    effect: Effect = "reads",
) -> ToolSpec:
    parameters: dict[str, object] = {"type": "object", "properties": properties, "required": list(required)}
    return ToolSpec(name, description, parameters, effect)


def text_field(description: str) -> dict[str, object]:
    return {"type": "string", "description": description}


def number_field(description: str) -> dict[str, object]:
    return {"anyOf": [{"type": "integer"}, {"type": "string"}, {"type": "null"}], "description": description}
