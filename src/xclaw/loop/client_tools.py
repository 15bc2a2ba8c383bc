"""Tools that the client of a root runs itself: a turn that asks for them only ends the run.

The client answers by sending the conversation again, with the results in it (the way of the
chat-completions and responses wires).
"""

from collections.abc import Mapping, Sequence

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.tools import Tool, ToolContext, ToolOutput, ToolSet

CLIENT_TOOLS = "client_tools"
"""The reason of an ending that hands calls to the client."""

ALONE = (
    "error: {name} is run by the user's client, and was not run. Ask for the client's tools in a turn of "
    "their own, without other tools."
)


class ClientTool:
    """Stands for a tool that is not run here."""

    replayable = True
    timeout_s: float | None = None

    def __init__(self, spec: ToolSpec) -> None:
        self.spec = spec

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        """Only reached beside calls of other tools, whose results would be lost on the client."""
        return ToolOutput(ALONE.format(name=self.spec.name), ok=False)


def client_tools(specs: Sequence[ToolSpec]) -> dict[str, Tool]:
    """By name."""
    return {spec.name: ClientTool(spec) for spec in specs}


def for_the_client(calls: Sequence[ToolCall], tools: ToolSet) -> bool:
    """Whether these calls are all the client's to run."""
    return bool(calls) and all(isinstance(tools.get(call.name), ClientTool) for call in calls)
