"""A model that thinks nothing: it calls `workflow` with the script that the user gave, and repeats the
answer. So a script of a user's is a run like any other: journaled, asked for, resumable, cancellable."""

import asyncio
import json
from collections.abc import Sequence
from typing import cast

from xclaw.contracts.errors import ModelRejected
from xclaw.contracts.messages import AssistantMessage, ChatMessage, ToolCall, ToolMessage, UserMessage
from xclaw.contracts.models import ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage

PROVIDER = "workflow"
HEADER = "# xclaw workflow: "
"""First line of a message that says more than the script: JSON of the tool's other arguments."""
_PROFILE = ModelProfile(
    context_tokens=10_000_000, native_tools=True, input_usd_per_million=0.0, output_usd_per_million=0.0
)
_TOOL_OUTPUT = "tool output:"


def message_for(script: str, options: dict[str, object]) -> str:
    """The user's message that runs this script."""
    return f"{HEADER}{json.dumps(options, sort_keys=True)}\n{script}" if options else script


class ScriptFileModel:
    """Implements `Model`. Stateless: a run that is taken up goes on where it was."""

    name: str = f"{PROVIDER}:"
    profile: ModelProfile = _PROFILE

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        """Raises `ModelRejected` with the reason when the workflow failed."""
        await asyncio.sleep(0)  # as every model: what it says comes after what was recorded before it
        answer = _answer_to(request)
        finish = "tool_calls" if answer.tool_calls else "stop"
        return ModelReply(answer, Usage(), self.name, finish, cost_usd=0.0)


def _answer_to(request: ModelRequest) -> AssistantMessage:
    said = _last(request.messages)
    if said is None:
        raise ModelRejected("there is no script to run")
    if isinstance(said, ToolMessage):
        if not said.ok:
            raise ModelRejected(_reason(said.content))
        return AssistantMessage(_output(said.content))
    if not request.tools:
        raise ModelRejected("a workflow file needs the native dialect: leave --dialect away")
    return AssistantMessage("", (ToolCall("call_0", "workflow", json.dumps(_arguments(said.text))),))


def _last(messages: Sequence[ChatMessage]) -> ToolMessage | UserMessage | None:
    """The workflow's answer, or the script that has none yet."""
    for message in reversed(messages):
        if isinstance(message, ToolMessage) or (
            isinstance(message, UserMessage) and message.origin == "user"
        ):
            return message
    return None


def _arguments(text: str) -> dict[str, object]:
    first, newline, rest = text.partition("\n")
    if newline and first.startswith(HEADER):
        try:
            options: object = json.loads(first.removeprefix(HEADER))
        except ValueError:
            options = None
        if isinstance(options, dict):
            return {**cast("dict[str, object]", options), "script": rest}
    return {"script": text}


def _output(content: str) -> str:
    """What the script answered, without what is reported beside it."""
    try:
        record: object = json.loads(content)
    except ValueError:  # it was so long that it lies in a file
        return content
    output = cast("dict[str, object]", record).get("result", "") if isinstance(record, dict) else content
    if not isinstance(output, str):
        return json.dumps(output, ensure_ascii=False, indent=2)
    return output or "(the script answered nothing)"


def _reason(content: str) -> str:
    try:
        record: object = json.loads(content)
    except ValueError:
        record = None
    if isinstance(record, dict) and "reason" in record:
        return f"the workflow failed: {cast('dict[str, object]', record)['reason']}"
    return content.removeprefix("error: ")[:2_000]
