"""A run can be told something while it goes on, left to the next process, and given a conversation."""

import asyncio
import re
from pathlib import Path

from tests.behaviour.harness import (
    Script,
    Seen,
    ask,
    follow,
    messages_of,
    run_script,
    settings_for,
    write_script,
)

from xclaw.app import open_app
from xclaw.contracts.events import MessageAdded, ModelAnswered, RunEnded, RunResumed, RunStarted
from xclaw.contracts.messages import Said, ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.routing import Route
from xclaw.contracts.usage import Spend, Usage
from xclaw.loop.client_tools import CLIENT_TOOLS
from xclaw.runtime.orders import Brought
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Calls, Hang, Text


def provider_env(provider: FakeProvider) -> dict[str, str]:
    return {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k"}


def test_what_the_user_says_meanwhile_is_read_at_the_next_turn(tmp_path: Path) -> None:
    """Issue: steer."""

    async def main() -> Seen:
        async with FakeProvider() as provider:
            provider.queue(Calls(("c1", "list_dir", '{"path": "."}')), Text("done, with tests"))
            settings = settings_for(tmp_path, "openai:m", env=provider_env(provider))
            async with open_app(settings) as app:
                handle = await app.runs.start(RunRequest("build it", "s", message_id="m1"))
                handle.steer("and write tests", "m2")
                seen = await follow(handle)
            said = [m["content"] for m in messages_of(provider.requests[-1].body) if m["role"] == "user"]
            assert any("and write tests" in str(text) for text in said)
            return seen

    seen = asyncio.run(main())
    assert [e for e in seen.events(MessageAdded) if e.message_id == "m2" and e.origin == "user"]
    assert seen.result.outcome == "success"


def test_a_suspended_run_goes_on_in_the_next_process_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    """K6: what a gateway leaves when it is told to stop."""

    async def main() -> None:
        async with FakeProvider() as provider:
            provider.queue(Calls(("c1", "list_dir", '{"path": "."}')), Hang())
            settings = settings_for(tmp_path, "openai:m", env=provider_env(provider))
            async with open_app(settings) as app:
                handle = await app.runs.start(RunRequest("go", "s"))
                await provider.wait_requests(2)
                assert await app.runs.suspend() == 1
                assert (await handle.result()).outcome == "interrupted"
            provider.queue(Text("finished"))
            async with open_app(settings) as app:
                (row,) = await app.runs.interrupted()
                seen = await follow(await app.runs.resume(row.root_id))
                entries = await app.journal.read_tree(row.root_id)
            assert seen.result.text == "finished"
            kinds = [type(entry.event) for entry in entries]
            assert kinds.count(RunEnded) == kinds.count(RunResumed) == kinds.count(RunStarted) == 1
            assert len(provider.requests) == 3

    asyncio.run(main())


def test_a_conversation_that_the_client_brings_is_what_the_model_sees(tmp_path: Path) -> None:
    history = (
        Said("user", "What is 2+2?"),
        Said("assistant", "", (ToolCall("c1", "add", '{"a": 2}'),)),
        Said("tool", "4", call_id="c1", name="add"),
    )

    async def main() -> None:
        async with FakeProvider() as provider:
            provider.queue(Text("It is 4."))
            settings = settings_for(tmp_path, "openai:m", env=provider_env(provider))
            async with open_app(settings) as app:
                brought = Brought(
                    history, "Speak like a pirate.", (ToolSpec("add", "adds", {"type": "object"}),)
                )
                seen = await ask(app, "", agent="coder", brought=brought)
            body = provider.requests[0].body
            assert seen.result.text == "It is 4."
            assert [m["role"] for m in messages_of(body)][:4] == ["system", "user", "assistant", "tool"]
            assert "pirate" in str(messages_of(body)[0]["content"])
            assert "add" in re.findall(r"'name': '(\w+)'", str(body["tools"]))

    asyncio.run(main())


def test_a_turn_that_asks_for_the_clients_tools_ends_the_run_with_the_calls(tmp_path: Path) -> None:
    script: Script = [{"agent": "coder", "replies": [{"calls": [{"name": "add", "arguments": {"a": 1}}]}]}]

    async def main() -> None:
        model = write_script(tmp_path, script)
        async with open_app(settings_for(tmp_path, model)) as app:
            brought = Brought(tools=(ToolSpec("add", "adds", {"type": "object"}),))
            seen = await ask(app, "1 and 1?", agent="coder", brought=brought)
        assert (seen.result.outcome, seen.result.reason) == ("success", CLIENT_TOOLS)
        (answered,) = seen.events(ModelAnswered)
        assert [call.name for call in answered.message.tool_calls] == ["add"]

    asyncio.run(main())


def test_the_clients_tools_beside_others_are_asked_for_again_alone(tmp_path: Path) -> None:
    calls: list[dict[str, object]] = [
        {"name": "list_dir", "arguments": {"path": "."}},
        {"name": "add", "arguments": {}},
    ]
    script: Script = [
        {
            "agent": "coder",
            "replies": [{"calls": calls}, {"calls": [{"name": "add", "arguments": {}}]}],
        }
    ]

    async def main() -> None:
        model = write_script(tmp_path, script)
        async with open_app(settings_for(tmp_path, model)) as app:
            brought = Brought(tools=(ToolSpec("add", "adds", {"type": "object"}),))
            seen = await ask(app, "go", agent="coder", brought=brought)
        assert seen.result.reason == CLIENT_TOOLS
        assert len(seen.events(ModelAnswered)) == 2

    asyncio.run(main())


def test_what_asking_a_router_model_cost_counts_to_the_tree(tmp_path: Path) -> None:
    """K4, B4."""
    spend = Spend(Usage(100, 5), 0.25, 0, 1)
    route = Route("coder", "model", "asked", spend=spend)
    script: Script = [{"agent": "coder", "replies": [{"text": "hi"}]}]

    async def main() -> None:
        model = write_script(tmp_path, script)
        async with open_app(settings_for(tmp_path, model)) as app:
            seen = await ask(app, "go", agent="coder", route=route)
        assert seen.result.spend.known_usd >= 0.25
        assert seen.result.spend.calls == 2

    asyncio.run(main())


def test_a_run_that_was_told_nothing_new_is_as_before(tmp_path: Path) -> None:
    seen = run_script(tmp_path, [{"agent": "orchestrator", "replies": [{"text": "hello"}]}])
    assert seen.result.text == "hello"
    assert seen.events(MessageAdded) == []


def test_a_call_of_the_clients_that_was_cut_off_is_asked_for_again(tmp_path: Path) -> None:
    """S16."""

    async def main() -> None:
        async with FakeProvider() as provider:
            provider.queue(Calls(("c1", "add", '{"a": 1'), finish="length"), Calls(("c2", "add", '{"a": 1}')))
            settings = settings_for(tmp_path, "openai:m", env=provider_env(provider))
            async with open_app(settings) as app:
                brought = Brought(tools=(ToolSpec("add", "adds", {"type": "object"}),))
                seen = await ask(app, "go", agent="coder", brought=brought)
            assert seen.result.reason == CLIENT_TOOLS
            assert [e.finish for e in seen.events(ModelAnswered)] == ["length", "tool_calls"]

    asyncio.run(main())


def test_an_answer_for_a_program_is_asked_for_as_such(tmp_path: Path) -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            provider.queue(Text('{"n": 1}'))
            settings = settings_for(tmp_path, "openai:m", env=provider_env(provider))
            async with open_app(settings) as app:
                await ask(app, "go", agent="coder", brought=Brought(output_schema={"type": "object"}))
            instructions = str(provider.requests[0].body["messages"])
            assert "reads your answer. Answer with the JSON that it asks for" in instructions
            assert "Do not output JSON" not in instructions

    asyncio.run(main())
