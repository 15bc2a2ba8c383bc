"""From the model's last words to an ending: success has to be true."""

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import MessageAdded, Warned
from xclaw.contracts.messages import AssistantMessage
from xclaw.loop.coordinated import settled
from xclaw.loop.finish import Accepted, AskAgain, effects_claimed, read_result
from xclaw.loop.parts import Ending, Parts

MAX_CORRECTIONS = 2
"""How often in a row a reply of the wrong form is sent back."""


async def conclude(parts: Parts, last: AssistantMessage) -> Ending | None:
    """The ending that the last answer means; None when something has to be said first.

    A run does not end while its background children run: their results are handed to it.
    """
    if parts.state.finish == "length":
        said = "" if parts.state.malformed else last.text
        return Ending("exhausted", said, "the answer was cut off at the model's output limit")
    if parts.state.finish == "content_filter":
        return Ending("error", last.text, "the provider's content filter stopped the answer")
    if await parts.inbox.wait():
        parts.inbox.take()
        return None
    if parts.state.malformed:
        return Ending("error", "", "the model kept writing tool calls that could not be read")
    if parts.task is not None and parts.task.structured:
        ending = _structured(parts, last.text)
        return settled(parts, ending) if ending is not None else None
    if not last.text.strip():
        return Ending("error", parts.state.findings(), "the model answered with nothing")
    return settled(parts, _answered(parts, last.text))


def _answered(parts: Parts, text: str) -> Ending:
    """An answer in text is what was asked for, unless work was handed out and nothing came of it."""
    state = parts.state
    pointers = _delivered(parts, {})
    reason = ""
    if state.child_results and not any(result.succeeded for result in state.child_results.values()):
        reason = "every worker that was given a part failed"
    elif state.child_results and not state.artifacts and effects_claimed(state.request):
        reason = "files were asked for and work was handed out; nothing was delivered"
    if reason:
        parts.log.record(Warned("unverified", reason))
        return Ending("completed_unverified", text, reason, None, pointers)
    return Ending("success", text, pointers=pointers)


def _structured(parts: Parts, text: str) -> Ending | None:
    assert parts.task is not None
    result = read_result(text, parts.workspace.verify, parts.task.output_schema)
    match result:
        case Accepted():
            return _accepted(parts, result, parts.task.text)
        case AskAgain():
            if parts.state.corrections < MAX_CORRECTIONS:
                parts.log.record(MessageAdded(result.reason, "runtime"))
                return None
            reason = f"unstructured: {result.reason}"
            parts.log.record(Warned("unverified", reason))
            return Ending("completed_unverified", text, reason, None, _delivered(parts, {}), structured=False)


def _accepted(parts: Parts, result: Accepted, task_text: str) -> Ending:
    pointers = _delivered(parts, result.pointers)
    if result.status == "error":
        return Ending("error", result.text, "the worker reported an error", result.summary_data, pointers)
    if not pointers and not parts.state.effects and effects_claimed(task_text):
        reason = "the task asked for an effect; nothing was delivered and no tool call succeeded"
        parts.log.record(Warned("unverified", reason))
        return Ending("completed_unverified", result.text, reason, result.summary_data, pointers)
    return Ending("success", result.text, "", result.summary_data, pointers)


def _delivered(parts: Parts, named: dict[str, Pointer]) -> tuple[tuple[str, Pointer], ...]:
    """The pointers that the worker named, and what it delivered without naming it."""
    paths = {pointer.path for pointer in named.values()}
    pointers = dict(named)
    for pointer in parts.state.delivered:
        if pointer.path not in paths:
            pointers[pointer.path.rsplit("/", 1)[-1]] = pointer
    return tuple(pointers.items())
