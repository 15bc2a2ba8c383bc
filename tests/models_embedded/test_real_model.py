"""The real model, opt-in: `pytest -m localmodel` with `xclaw[local]` installed.

Asserts on forms and contracts, never on wording or speed: the model is small and this machine may be busy.
"""

import asyncio
import json
import os
import signal
from collections.abc import Awaitable, Callable, Sequence
from typing import cast

import pytest
from carrier import settings_in

from xclaw.contracts.coaching import Standing
from xclaw.contracts.coordination import PHASE_TOOLS
from xclaw.contracts.errors import ModelError
from xclaw.contracts.messages import AssistantMessage, ChatMessage, UserMessage
from xclaw.contracts.models import Attempt, ModelRequest
from xclaw.loop.dialects import JsonDialect
from xclaw.loop.finish import RESULT_SCHEMA
from xclaw.loop.schema_checks import violations
from xclaw.models.embedded.model import LocalModel
from xclaw.models.embedded.phase_schema import phase_schema
from xclaw.models.embedded.phase_shots import coordinator_brief, coordinator_shots
from xclaw.models.embedded.schema import action_schema
from xclaw.models.embedded.shots import orchestrator_brief, orchestrator_shots, worker_brief, worker_shots
from xclaw.models.embedded.weights import status
from xclaw.patterns.delegate import DelegateTool
from xclaw.tools.deliver import deliver

pytestmark = [pytest.mark.localmodel, pytest.mark.timeout(1_200)]
AGENTS = {"coder": "writes code and its tests", "writer": "writes documentation", "reviewer": "reviews code"}
Reply = dict[str, object]


class Sink:
    def on_text(self, text: str) -> None:
        """Dropped."""

    def on_attempt_failed(self, attempt: Attempt) -> None:
        raise AssertionError("a single model reports no attempts")


@pytest.fixture(scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LocalModel:
    if "localmodel" not in str(request.config.getoption("markexpr")):
        pytest.skip("opt-in: -m localmodel")
    settings = settings_in(tmp_path_factory.mktemp("local"), shared=False)
    if problem := status(settings).problem:
        pytest.skip(problem)
    return LocalModel(settings)


async def say(
    model: LocalModel, brief: str, history: Sequence[ChatMessage], schema: dict[str, object]
) -> Reply:
    messages = JsonDialect().messages(list(history))
    reply = await model.reply(ModelRequest(brief, messages, output_schema=schema), Sink())
    assert reply.cost_usd == 0.0
    return cast("Reply", json.loads(reply.message.text))


def run(model: LocalModel, main: Callable[[], Awaitable[None]]) -> None:
    async def closing() -> None:
        try:
            await main()
        finally:
            await model.close()

    asyncio.run(closing())


@pytest.mark.parametrize(
    "request_text",
    [
        "Write a Python function slugify(text) with tests, and a short README for it",
        "写一个 Python 的单词统计脚本，并写一份使用说明",
    ],
)
def test_an_orchestrator_hands_out_parts_and_then_answers(model: LocalModel, request_text: str) -> None:
    async def main() -> None:
        schema = action_schema([DelegateTool(lambda _path: None).spec], None, agents=tuple(AGENTS))
        history: list[ChatMessage] = [*orchestrator_shots, UserMessage(request_text)]
        said: list[Reply] = []
        for turn in range(8):
            said.append(await say(model, orchestrator_brief(AGENTS), history, schema))
            if said[-1]["action"] == "answer":
                break
            path = f"/workspace/shared/{turn}/file"
            record = {
                "status": "success",
                "artifact_pointers": {"file": path},
                "summary_data": {"summary": "Done."},
            }
            output = f"tool output: delegate\n```\n{json.dumps(record)}\n```"
            history += [
                AssistantMessage(json.dumps(said[-1], ensure_ascii=False)),
                UserMessage(output, "runtime"),
            ]
        assert said[0]["action"] == "delegate"
        assert said[-1]["action"] == "answer"
        assert len(said) > 2

    run(model, main)


def test_a_worker_delivers_a_file_and_then_ends_with_the_result_form(model: LocalModel) -> None:
    async def main() -> None:
        schema = action_schema([deliver.spec], RESULT_SCHEMA)
        task = (
            "[Task workspace: /workspace/agents/1]\n\n[Shared delivery dir: /workspace/shared/1]\n\nWrite the Python module "
            "slug.py with slugify(text): lower case, everything but letters and digits becomes one hyphen. Deliver it."
        )
        brief = worker_brief("You are a coder.")
        history: list[ChatMessage] = [*worker_shots, UserMessage(task, "agent")]
        first = await say(model, brief, history, schema)
        assert first["action"] == "deliver"
        compile(str(first["content"]), "slug.py", "exec")
        output = f"tool output: deliver\n```\ndelivered: /workspace/shared/1/{first['path']}\n```"
        history += [AssistantMessage(json.dumps(first)), UserMessage(output, "runtime")]
        last = await say(model, brief, history, schema)
        for _ in range(2):
            if last["action"] == "result":
                break
            history += [AssistantMessage(json.dumps(last)), UserMessage(output, "runtime")]
            last = await say(model, brief, history, schema)
        assert (last["action"], last["status"], last["artifact_pointers"]) == ("result", "success", {})

    run(model, main)


@pytest.mark.parametrize("tool", [*PHASE_TOOLS, "answer"])
def test_each_step_of_a_coordinator_gets_a_reply_that_its_schema_allows(model: LocalModel, tool: str) -> None:
    async def main() -> None:
        offered = (tool,) if tool in PHASE_TOOLS else ()
        schema = phase_schema(Standing("x", offered=offered), list(AGENTS))
        request = f"Write slug.py with slugify(text), and make sure that it works. (Next: call {tool}.)"
        history: list[ChatMessage] = [*coordinator_shots, UserMessage(request)]
        reply = await say(model, coordinator_brief(AGENTS), history, schema)
        assert reply["action"] == tool
        assert not violations(reply, schema)

    run(model, main)


def test_a_killed_server_costs_one_call(model: LocalModel) -> None:
    async def main() -> None:
        async def ask() -> str:
            return (
                await model.reply(ModelRequest("Be brief.", [UserMessage("Say yes.")]), Sink())
            ).message.text

        assert await ask()
        pid = model.server_pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        try:
            text = await ask()
        except ModelError:
            text = await ask()
        assert text

    run(model, main)
