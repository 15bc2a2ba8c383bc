"""Background agents: told something while they work, stopped, listed, given as much context as was asked for."""

import asyncio
import json
from pathlib import Path
from typing import cast

from tests.behaviour.harness import follow, settings_for

from xclaw.app import open_app
from xclaw.contracts.events import ChildEnded, MailSent, MessageAdded, RunStarted, ToolCallEnded
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import RecordedRequest
from xclaw.testing.fake_replies import Calls, Hang, Raw, Text, Until, stream_of


def env(provider: FakeProvider) -> dict[str, str]:
    return {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k"}


def call(name: str, **arguments: object) -> tuple[str, str, str]:
    return ("c", name, json.dumps(arguments))


def said(request: RecordedRequest, role: str = "user") -> str:
    messages = cast("list[dict[str, object]]", request.body["messages"])
    return "\n".join(str(m.get("content")) for m in messages if m["role"] == role)


RESULT = '{"status": "success", "summary_data": {"done": true}, "artifact_pointers": {}}'
SPAWN = call("spawn", agent="coder", prompt="Think about the number 17 and say whether it is prime.")


def heard(body: dict[str, object]) -> tuple[bool, str]:
    """Whether the child asks, and everything that was said but the system prompt."""
    messages = [m for m in cast("list[dict[str, object]]", body["messages"]) if m["role"] != "system"]
    return any(str(m["content"]).startswith("[Task workspace: /") for m in messages), str(messages)


def test_a_message_to_a_background_agent_is_read_at_its_next_turn(tmp_path: Path) -> None:
    """G1; the parent's word is an instruction, and journaled on both sides."""

    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider:
            told = asyncio.Event()

            def answer(body: dict[str, object]) -> Calls | Text | Raw:
                is_child, text = heard(body)
                if is_child:
                    if "Also consider 18." in text:
                        return Text(RESULT)
                    return Raw(Until(told), stream_of(Calls(call("list_dir", path=".")), True))
                if "agent_id" not in text:
                    return Calls(SPAWN)
                if "sent" not in text:
                    return Calls(call("send_message", to="coder", message="Also consider 18."))
                told.set()
                return Text("all done") if "finished" in text else Calls(call("wait"))

            provider.answer_with(answer)
            settings = settings_for(tmp_path, "openai:m", env=env(provider))
            async with open_app(settings) as app:
                seen = await follow(await app.runs.start(RunRequest("go", "s")))
            (mail,) = seen.events(MailSent)
            (read,) = [e for e in seen.events(MessageAdded) if e.message_id == mail.mail_id]
            assert (read.text, read.origin) == ("Also consider 18.", "agent")
            assert any("Also consider 18." in said(request) for request in provider.requests)

    asyncio.run(main())


def test_mail_that_was_on_its_way_when_the_process_died_is_delivered_once(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider:
            settings = settings_for(tmp_path, "openai:m", env=env(provider))

            def first(body: dict[str, object]) -> Calls | Hang:
                is_child, text = heard(body)
                if is_child or "sent" in text:
                    return Hang()
                if "agent_id" in text:
                    return Calls(call("send_message", to="coder", message="Also consider 18."))
                return Calls(SPAWN)

            provider.answer_with(first)
            async with open_app(settings) as app:
                await app.runs.start(RunRequest("go", "s"))
                await provider.wait_requests(4)
                await app.runs.suspend()

            def then(body: dict[str, object]) -> Calls | Text:
                is_child, text = heard(body)
                if is_child:
                    return Text(RESULT)
                return Text("all done") if "task-notification" in text else Calls(call("wait"))

            provider.answer_with(then)
            async with open_app(settings) as app:
                (row,) = await app.runs.interrupted()
                await follow(await app.runs.resume(row.root_id))
                entries = await app.journal.read_tree(row.root_id)
            (mail,) = [e.event for e in entries if isinstance(e.event, MailSent)]
            read = [
                e for e in entries if isinstance(e.event, MessageAdded) and e.event.message_id == mail.mail_id
            ]
            assert [entry.address.run_id for entry in read] == [mail.to_run_id]

    asyncio.run(main())


def test_an_agent_that_is_stopped_hands_over_what_it_had_and_is_listed_as_ended(tmp_path: Path) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), FakeProvider() as provider:
            settings = settings_for(tmp_path, "openai:m", env=env(provider))

            def answer(body: dict[str, object]) -> Calls | Text | Hang:
                is_child, text = heard(body)
                if is_child:
                    return Hang()
                if '"agents"' in text:
                    return Text("stopped it")
                if "was wrong" in text:
                    return Calls(call("list_agents"))
                if "agent_id" in text:
                    return Calls(call("stop", agent_id="coder", reason="the task was wrong"))
                return Calls(SPAWN)

            provider.answer_with(answer)
            async with open_app(settings) as app:
                seen = await follow(await app.runs.start(RunRequest("go", "s")))
            (ended,) = seen.events(ChildEnded)
            assert (ended.result.outcome, ended.result.reason) == ("cancelled", "the task was wrong")
            listing = next(e for e in seen.events(ToolCallEnded) if e.name == "list_agents")
            (state,) = json.loads(listing.content)["agents"]
            assert (state["agent"], state["status"]) == ("coder", "cancelled")
            assert seen.result.outcome in ("success", "completed_unverified")

    asyncio.run(main())


def context_of(tmp_path: Path, context: str) -> tuple[RunStarted, dict[str, object], RecordedRequest]:
    """The child's start, what spawn answered, and the child's first request."""

    async def main() -> tuple[RunStarted, dict[str, object], RecordedRequest]:
        async with asyncio.timeout(20), FakeProvider() as provider:
            settings = settings_for(tmp_path, "openai:m", env=env(provider))
            spawn = call("spawn", agent="coder", prompt="Do what the user asked for.", context=context)

            def answer(body: dict[str, object]) -> Calls | Text:
                is_child, text = heard(body)
                if is_child:
                    return Text(RESULT)
                if "finished" in text or "task-notification" in text:
                    return Text("done")
                return Calls(call("wait")) if "agent_id" in text else Calls(spawn)

            async with open_app(settings) as app:
                provider.queue(Text("The code word is heron."))
                await follow(await app.runs.start(RunRequest("Remember: count the herons.", "s")))
                provider.answer_with(answer)
                seen = await follow(await app.runs.start(RunRequest("Now start.", "s")))
            child = next(e for e in seen.events(RunStarted) if e.depth == 1)
            spawned = next(e for e in seen.events(ToolCallEnded) if e.name == "spawn")
            request = next(r for r in provider.requests if heard(r.body)[0])
            return child, json.loads(spawned.content), request

    return asyncio.run(main())


def test_a_fork_gives_the_child_the_conversation_and_says_what_it_costs(tmp_path: Path) -> None:
    """E7, G1."""
    child, answered, request = context_of(tmp_path, "fork")
    assert [item.text for item in child.history] == [
        "Remember: count the herons.",
        "The code word is heron.",
        "Now start.",
    ]
    assert answered["context"] == "fork"
    assert int(str(answered["context_tokens"])) > 10
    assert "heron" in said(request, "assistant")


def test_a_brief_is_background_in_front_of_the_task(tmp_path: Path) -> None:
    child, answered, request = context_of(tmp_path, "brief")
    assert child.history == ()
    assert "[Background" in child.input
    assert child.input.index("count the herons") < child.input.index("Do what the user asked for.")
    assert int(str(answered["context_tokens"])) > 10
    assert "heron" in said(request)


def test_without_context_a_child_sees_its_task_alone(tmp_path: Path) -> None:
    child, answered, request = context_of(tmp_path, "none")
    assert answered["context_tokens"] == 0
    assert "heron" not in child.input
    assert "heron" not in str(request.body["messages"])
