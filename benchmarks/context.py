"""Tokens in the orchestrator's context over five delegations: pointers against inlining (SPEC E3).

Measured from the requests really sent: the same five files of about 1,500 tokens each come back once as
pointers, as xclaw does it, and once inline, as a worker without `deliver` would answer.
"""

import asyncio
import json
from collections.abc import Callable

from benchmarks.setting import Row, app_on
from xclaw.contracts.tokens import estimate_tokens
from xclaw.runtime.runs import RunRequest
from xclaw.testing import Calls, FakeProvider, Reply, Text

DELEGATIONS = 5
FILE = "".join(f"export function step{n}(input) {{ return check(input, {n}); }}\n" for n in range(90))


def _messages(body: dict[str, object]) -> list[dict[str, object]]:
    messages = body["messages"]
    assert isinstance(messages, list)
    return messages  # pyright: ignore[reportUnknownVariableType] - JSON


def _answers(*, inline: bool) -> Callable[[dict[str, object]], Reply]:
    def answer(body: dict[str, object]) -> Reply:
        messages = _messages(body)
        turn = sum(message["role"] == "assistant" for message in messages)
        if "You are the orchestrator" in str(messages[0]["content"]):
            if turn == DELEGATIONS:
                return Text("All five steps are done.")
            task = f"Implement step number {turn + 1} of the parser in JavaScript, as one file."
            return Calls(("c", "delegate", json.dumps({"agent": "coder", "task": task})))
        if not inline and turn == 0:
            return Calls(("c", "deliver", json.dumps({"path": "step.js", "content": FILE})))
        if inline:
            summary: dict[str, object] = {"files_written": ["step.js"], "code": FILE}
        else:
            summary = {"files_written": ["step.js"], "exports": ["step"], "dependencies": []}
        return Text(json.dumps({"status": "success", "summary_data": summary, "artifact_pointers": {}}))

    return answer


async def _growth(*, inline: bool) -> tuple[float, int]:
    """Tokens that one delegation adds to the orchestrator's context, and those of its last request."""
    async with FakeProvider() as provider, app_on(provider.url, inline_limit_chars=100_000) as app:
        provider.answer_with(_answers(inline=inline))
        handle = await app.runs.start(RunRequest("Write a parser in five steps", "s"))
        await handle.result()
        sizes = [
            estimate_tokens(json.dumps(_messages(request.body)))
            for request in provider.requests
            if "You are the orchestrator" in str(_messages(request.body)[0]["content"])
        ]
    return (sizes[-1] - sizes[0]) / DELEGATIONS, sizes[-1]


async def measure() -> list[Row]:
    pointers, last_with_pointers = await _growth(inline=False)
    inline, last_inline = await _growth(inline=True)
    return [
        Row(
            "context: tokens a delegation adds, pointers | inline",
            f"{pointers:.0f}",
            f"{inline:.0f}",
            f"1/{inline / pointers:.1f}",
        ),
        Row(
            "context: tokens of the last request, pointers | inline",
            f"{last_with_pointers}",
            f"{last_inline}",
            f"1/{last_inline / last_with_pointers:.1f}",
        ),
    ]


def main() -> list[Row]:
    return asyncio.run(measure())
