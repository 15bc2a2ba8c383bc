"""Python functions as tools: `@tool` over an async or a plain function."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import cast, overload

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.permissions import Effect
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.tools.schema import WIRE_NAME, FunctionSchema, schema_of
from xclaw.tools.threads import in_own_thread

Function = Callable[..., object]


@dataclass(frozen=True, slots=True)
class FunctionTool:
    """A function as a `Tool`. Made by `tool`.

    A plain function runs in a thread of its own with the caller's context variables; cancelling it
    stops the wait, not the thread. Its answer becomes text: a string as it is, a `ToolOutput` as it
    is, anything else as JSON.
    """

    spec: ToolSpec
    replayable: bool
    timeout_s: float | None
    function: Function
    schema: FunctionSchema

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        keywords = self.schema.keywords(arguments, context)
        if inspect.iscoroutinefunction(self.function):
            answer = await cast(Awaitable[object], self.function(**keywords))
        else:
            answer = await in_own_thread(lambda: self.function(**keywords))
        return _output_from(answer)


@overload
def tool(function: Function, /) -> FunctionTool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    replayable: bool = False,
    timeout_s: float | None = None,
    effect: Effect = "writes",
) -> Callable[[Function], FunctionTool]: ...


def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    replayable: bool = False,
    timeout_s: float | None = None,
    effect: Effect = "writes",
) -> FunctionTool | Callable[[Function], FunctionTool]:
    """Make a tool from a function: its types are the schema, its docstring is the description.

    A parameter annotated `ToolContext` gets the call's context. `replayable`: running it again after
    a crash is harmless. `effect` is what permissions go by; what reaches beyond the run's own files
    must be "edits" or "acts". Raises `UsageError` for a function that cannot be a tool.
    """

    def decorate(decorated: Function) -> FunctionTool:
        wire_name = name or str(getattr(decorated, "__name__", ""))
        if not WIRE_NAME.fullmatch(wire_name):
            raise UsageError(
                f"{wire_name!r} cannot be the name of a tool: use 1 to 64 of A-Z a-z 0-9 _ -, or name=…"
            )
        if inspect.isasyncgenfunction(decorated) or inspect.isgeneratorfunction(decorated):
            raise UsageError(f"{wire_name}: a tool returns its answer, it does not yield it")
        schema = schema_of(decorated)
        text = description or schema.description
        if not text:
            raise UsageError(f"{wire_name}: a tool needs a docstring, which tells the model what it is for")
        spec = ToolSpec(wire_name, text, schema.parameters, effect)
        return FunctionTool(spec, replayable, timeout_s, decorated, schema)

    return decorate if function is None else decorate(function)


def _output_from(answer: object) -> ToolOutput:
    match answer:
        case ToolOutput():
            return answer
        case str():
            return ToolOutput(answer)
        case None:
            return ToolOutput("done")
        case _:
            return ToolOutput(msgspec.json.encode(answer, enc_hook=str).decode())
