"""A gateway in one process, chats in others: what the seed shows, and what happens when one dies."""

import asyncio
import json
import signal
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest
from terminal import PLAIN, PROMPT, Terminal, at_terminal
from xclaw_command import Json, Xclaw

from xclaw.gateway.lock import find
from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Raw, Text, Until, delta

WAIT_S = 120.0
INJECTION = '帮我看看这段代码有没有 SQL 注入漏洞: db.run("SELECT * FROM users WHERE name = \'" + name + "\'")'
FOLLOW_UP = "这个漏洞还有别的安全风险吗？"
Scene = Callable[[Xclaw, FakeProvider, dict[str, str]], Awaitable[None]]


@pytest.fixture
def play(tmp_path: Path) -> Callable[[Scene], None]:
    """Plays a scene with a provider in this process and commands in others."""

    def played(scene: Scene) -> None:
        async def main() -> None:
            async with asyncio.timeout(WAIT_S), FakeProvider() as provider:
                env = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m", **PLAIN}
                await scene(Xclaw(tmp_path), provider, env)

        asyncio.run(main())

    return played


@asynccontextmanager
async def served(
    xclaw: Xclaw, *arguments: str, env: dict[str, str]
) -> AsyncGenerator[asyncio.subprocess.Process]:
    """`xclaw serve` in a process of its own, ready; ended with the block if it still runs."""
    process = await xclaw.start("serve", "--port", "0", *arguments, env=env)
    assert process.stdout is not None
    said = await process.stdout.readline()
    assert b"listens on" in said, said
    try:
        yield process
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def said(terminal: Terminal, line: str) -> str:
    """Type a message and wait for the prompt after the answer; answers what came between."""
    terminal.type(line)
    await terminal.expect(line)
    return await terminal.expect(PROMPT)


async def output(xclaw: Xclaw, *arguments: str, env: dict[str, str]) -> str:
    process = await xclaw.start(*arguments, env=env)
    out, err = await process.communicate()
    assert process.returncode == 0, (out, err)
    return out.decode()


def body(provider: FakeProvider, number: int) -> str:
    return json.dumps(provider.requests[number].body, ensure_ascii=False)


def test_a_security_question_goes_to_the_skeptic_who_remembers_it(play: Callable[[Scene], None]) -> None:
    """SPEC B2, B5: the seed's session; the orchestrator takes no part in it."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("发现高危漏洞！", chunk=2), Text("还有越权风险。"))
        async with served(xclaw, env=env), at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            answer = await said(chat, INJECTION)
            assert "[skeptic]" in answer
            assert answer.count("发现高危漏洞！") == 1
            assert "还有越权风险。" in await said(chat, FOLLOW_UP)
            assert "SQL 注入漏洞" in body(provider, 1)
            assert "发现高危漏洞" in body(provider, 1)
            assert "security (skeptic)  yes, by" in await said(chat, "/route 有没有 SQL 注入漏洞？")
            team = await said(chat, "/team")
            assert "skeptic  2 messages" in team
            chat.type("/quit")
            assert await chat.ended() == 0
            trace = cast("Json", json.loads(await output(xclaw, "trace", "--json", env=env)))
            tree = cast("Json", trace["tree"])
            assert (tree["agent"], tree["session_id"], tree["children"]) == (
                "skeptic",
                "team:skeptic:cli",
                [],
            )
            listed = cast("Json", json.loads(await output(xclaw, "tasks", "--json", env=env)))
            assert {run["agent"] for run in cast("list[Json]", listed["runs"])} == {"skeptic"}

    play(scene)


def test_after_the_gateway_was_killed_the_conversation_goes_on_and_nothing_is_shown_twice(
    play: Callable[[Scene], None],
) -> None:
    """SPEC K6: killed in the middle of a streamed answer; the chat starts another gateway by itself."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        never = asyncio.Event()
        provider.queue(
            Text("One."),
            Raw(delta("The answer "), delta("is "), Until(never)),
            Text("The answer is forty-two.", chunk=4),
            Text("Three."),
        )
        async with served(xclaw, env=env) as server, at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            assert "One." in await said(chat, "first")
            chat.type("second")
            await chat.expect("The answer is ")
            server.kill()
            await server.wait()
            await chat.expect("connected to the gateway again")
            rest = await chat.expect(PROMPT)
            assert "forty-two." in rest
            assert "answer" not in rest
            assert "Three." in await said(chat, "third")
            assert '"content": "first"' in body(provider, 3)
            assert body(provider, 3).count("The answer is forty-two.") == 1
            assert chat.text.count("The answer") == 1

    play(scene)


def test_an_answer_that_starts_otherwise_after_a_kill_is_marked_and_shown_whole(
    play: Callable[[Scene], None],
) -> None:
    """SPEC K6."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Raw(delta("It is 41"), Until(asyncio.Event())), Text("It was 42."))
        async with served(xclaw, env=env) as server, at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            chat.type("what is it?")
            await chat.expect("It is 41")
            server.kill()
            await server.wait()
            await chat.expect("[started again]")
            assert (await chat.expect(PROMPT)).strip().endswith("It was 42.")

    play(scene)


def test_a_gateway_that_is_served_again_takes_over_from_the_one_that_a_chat_started(
    play: Callable[[Scene], None],
) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("One."), Text("Two."))
        async with at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            assert "One." in await said(chat, "first")
            started = find(xclaw.home)
            async with served(xclaw, env=env) as server:
                running = find(xclaw.home)
                assert started is not None
                assert running is not None
                assert (running.pid, started.pid != server.pid) == (server.pid, True)
                assert "Two." in await said(chat, "second")

    play(scene)


def test_two_chats_share_one_gateway_and_see_the_same_session(play: Callable[[Scene], None]) -> None:
    """SPEC A4: both start at once; what one asks appears in the other."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("Forty-two."), Text("Forty-three."))
        async with at_terminal(xclaw, env=env) as one, at_terminal(xclaw, env=env) as other:
            await one.expect(PROMPT)
            await other.expect(PROMPT)
            assert "Forty-two." in await said(one, "what is it?")
            await other.expect("what is it?")
            await other.expect("Forty-two.")
            other.type("and one more?")
            await other.expect("Forty-three.")
            await one.expect("and one more?")
            await one.expect("Forty-three.")
            assert one.text.count("Forty-two.") == other.text.count("Forty-two.") == 1

    play(scene)


def test_a_run_can_be_steered_from_the_chat_that_shows_it(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        go_on = asyncio.Event()
        look: dict[str, object] = {
            "index": 0,
            "id": "c1",
            "type": "function",
            "function": {"name": "list_dir", "arguments": "{}"},
        }
        provider.queue(
            Raw(delta("Looking."), Until(go_on), delta(tool_calls=[look]), delta(finish="tool_calls")),
            Text("In French, then."),
        )
        async with served(xclaw, env=env), at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            chat.type("what is there?")
            await chat.expect("Looking.")
            chat.type("/steer answer in French")
            await chat.expect("the run reads this at its next turn")
            go_on.set()
            await chat.expect("In French, then.")
            await chat.expect(PROMPT)
            assert "answer in French" in body(provider, 1)

    play(scene)


def test_ctrl_c_ends_the_run_and_the_chat_goes_on(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Raw(delta("half an answer"), Until(asyncio.Event())), Text("whole"))
        async with served(xclaw, env=env), at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            chat.type("first")
            await chat.expect("half an answer")
            chat.press(b"\x03")
            await chat.expect("the run ended as cancelled")
            await chat.expect(PROMPT)
            assert "whole" in await said(chat, "second")

    play(scene)


def test_a_live_terminal_shows_each_answer_and_takes_what_is_typed_meanwhile(
    play: Callable[[Scene], None],
) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        go_on = asyncio.Event()
        provider.queue(Raw(delta("Half"), Until(go_on), delta(" whole.", finish="stop")), Text("Next."))
        live = {**env, "NO_COLOR": "", "TERM": "xterm"}
        async with served(xclaw, env=env), at_terminal(xclaw, env=live) as chat:
            await chat.expect(PROMPT)
            chat.type("first")
            await chat.expect("Half")
            chat.press(b"seconx\x7fd")
            await chat.expect("you> second▏")
            chat.press(b"\n")
            go_on.set()
            await chat.expect("Half whole.")
            await chat.expect("Next.")
            await chat.expect(PROMPT)
            assert "second" in body(provider, 1)

    play(scene)


def test_a_message_that_a_dead_gateway_never_accepted_reaches_the_next_one_once(
    play: Callable[[Scene], None],
) -> None:
    """SPEC A4: the gateway does not answer any more when the message is said."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("One."), Text("Two."))
        async with served(xclaw, env=env) as server, at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            assert "One." in await said(chat, "first")
            server.send_signal(signal.SIGSTOP)
            chat.type("second")
            await chat.expect("second")
            server.kill()
            await server.wait()
            await chat.expect("Two.")
            await chat.expect(PROMPT)
            assert len(provider.requests) == 2

    play(scene)


def test_options_of_the_process_are_refused_when_the_gateway_has_others(
    play: Callable[[Scene], None],
) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        async with served(xclaw, env=env):
            for option in (
                ("--allow-shell",),
                ("--dialect", "json"),
                ("--mode", "full"),
                ("--workspace", "elsewhere"),
            ):
                process = await xclaw.start("chat", *option, env=env)
                _, err = await process.communicate()
                assert process.returncode == 2
                assert b"xclaw serve --stop" in err

    play(scene)


def test_a_named_gateway_needs_a_token_and_is_never_started(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("From afar."))
        async with served(xclaw, env=env):
            running = find(xclaw.home)
            assert running is not None
            token = (xclaw.home / "gateway-token").read_text().strip()
            elsewhere = Xclaw(xclaw.directory / "elsewhere")
            elsewhere.directory.mkdir()
            for given, code, told in (
                ({"XCLAW_GATEWAY_TOKEN": token}, 0, "From afar."),
                ({}, 2, "XCLAW_GATEWAY_TOKEN"),
                ({"XCLAW_GATEWAY_TOKEN": f"{token}x"}, 2, "does not accept this token"),
            ):
                process = await elsewhere.start(
                    "chat", "--gateway", running.url, env=given, stdin=asyncio.subprocess.PIPE
                )
                out, err = await process.communicate(b"hi\n")
                assert (process.returncode, told in (out + err).decode()) == (code, True), (out, err)
            assert find(elsewhere.home) is None

    play(scene)


def test_a_question_of_an_agent_is_put_and_answered_in_the_chat(play: Callable[[Scene], None]) -> None:
    """SPEC J2."""

    async def scene(xclaw: Xclaw, _provider: FakeProvider, env: dict[str, str]) -> None:
        (xclaw.home / "agents").mkdir(parents=True)
        (xclaw.home / "agents" / "runner.md").write_text(
            "---\nname: runner\ndescription: runs\ntools: shell\n---\nYou run commands.\n"
        )
        call: Json = {"name": "shell", "arguments": {"command": "touch made.txt"}}
        model = xclaw.script([{"agent": "runner", "replies": [{"calls": [call]}, {"text": "the end"}]}])
        async with served(xclaw, env=env), at_terminal(xclaw, "-a", "runner", "-m", model, env=env) as chat:
            await chat.expect(PROMPT)
            chat.type("go")
            await chat.expect("touch made.txt")
            await chat.expect("[n reason] no")
            chat.type("what?")
            await chat.expect("that is no answer")
            chat.type("y")
            await chat.expect("the end")
            await chat.expect(PROMPT)
            assert [path.name for path in xclaw.directory.rglob("made.txt")] == ["made.txt"]

    play(scene)


@pytest.mark.parametrize("with_gateway", [True, False])
def test_sessions_and_teams_are_the_same_with_a_gateway_and_without(
    tmp_path: Path, *, with_gateway: bool
) -> None:
    """SPEC B5."""
    xclaw = Xclaw(tmp_path)
    model = xclaw.script([{"agent": "skeptic", "replies": [{"text": "Yes, it is injectable."}]}])
    ended = xclaw("run", "-m", model, "-s", "mine", "-o", "json", "is there an SQL injection in this?")
    assert (ended.document["agent"], ended.document["session_id"]) == ("skeptic", "mine")
    assert cast("Json", ended.document["route"])["by"] == "rule"
    if with_gateway:
        started = xclaw("serve", "--background", "--port", "0", "--json")
        assert started.document["event"] == "ready"
    (listed,) = cast("list[Json]", xclaw("sessions", "--json").document["sessions"])
    assert (listed["session"], listed["residents"]) == ("mine", ["skeptic"])
    assert "is called 'Injection' now" in xclaw("sessions", "rename", "mine", "Injection").out
    assert "Injection" in xclaw("sessions", "show", "mine").out
    assert "Yes, it is injectable." in xclaw("sessions", "export", "mine").out
    team = xclaw("team", "-s", "mine")
    assert "skeptic  1 message" in team.out
    assert "is there an SQL injection in this?" in team.out
    assert xclaw("team", "-s", "mine", "--reset", "skeptic").code == 0
    gone = xclaw("sessions", "delete", "mine")
    assert (gone.code, "there is no session 'mine'" in gone.err) == (2, True)
    stopped = xclaw("serve", "--stop", "--json")
    assert stopped.document["stopped"] is with_gateway
    assert xclaw("serve", "--status").code == 1


def test_serve_shows_its_token_once_and_refuses_a_second_one(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, _provider: FakeProvider, env: dict[str, str]) -> None:
        process = await xclaw.start("serve", "--port", "0", env=env)
        assert process.stdout is not None
        await process.stdout.readline()
        token = (await process.stdout.readline()).split()[-1].decode()
        assert (xclaw.home / "gateway-token").read_text().strip() == token
        second = await xclaw.start("serve", "--port", "0", env=env)
        _, err = await second.communicate()
        assert (second.returncode, b"a gateway runs already" in err) == (2, True)
        process.terminate()
        out, _ = await process.communicate()
        assert (process.returncode, out) == (0, b"")
        async with served(xclaw, env=env) as again:
            again.terminate()
            out, _ = await again.communicate()
            assert b"token" not in out

    play(scene)


def test_a_gateway_that_cannot_start_says_why_to_the_chat(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    (xclaw.home / "agents").mkdir(parents=True)
    (tmp_path / "file").write_text("")
    ended = xclaw("chat", "--workspace", "file/below", stdin="hi\n")
    assert ended.code == 2
    assert "cannot be made" in ended.err
    assert "Traceback" not in ended.err


def test_a_gateway_that_a_chat_started_ends_when_nobody_needs_it(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        process = await xclaw.start("serve", "--port", "0", "--idle-exit", "0.2", env=env)
        out, err = await process.communicate()
        assert process.returncode == 0, (out, err)
        assert find(xclaw.home) is None

    play(scene)


def test_a_chat_that_comes_in_the_middle_of_an_answer_shows_all_of_it(play: Callable[[Scene], None]) -> None:
    """SPEC A4."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        go_on = asyncio.Event()
        provider.queue(Raw(delta("Half an "), Until(go_on), delta("answer."), delta(finish="stop")))
        async with served(xclaw, env=env), at_terminal(xclaw, env=env) as one:
            await one.expect(PROMPT)
            one.type("first")
            await one.expect("Half an ")
            async with at_terminal(xclaw, env=env) as other:
                await other.expect(PROMPT)
                go_on.set()
                await other.expect("Half an answer.")
                await one.expect("answer.")
                assert other.text.count("Half") == 1

    play(scene)


def test_ctrl_c_leaves_a_chat_that_cannot_reach_its_gateway(play: Callable[[Scene], None]) -> None:
    async def scene(xclaw: Xclaw, _provider: FakeProvider, env: dict[str, str]) -> None:
        elsewhere = {**env, "XCLAW_GATEWAY_TOKEN": "t" * 20}
        async with at_terminal(xclaw, "--gateway", "http://127.0.0.1:9", env=elsewhere) as chat:
            await chat.expect("cannot be reached")
            chat.press(b"\x03")
            assert await chat.ended() == 130

    play(scene)


def test_a_message_that_is_too_long_is_refused_and_the_chat_goes_on(play: Callable[[Scene], None]) -> None:
    """One whose frame is longer than the gateway takes would cost the connection."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(Text("Short."))
        process = await xclaw.start("chat", env=env, stdin=asyncio.subprocess.PIPE)
        out, err = await process.communicate(b"x" * 1_000_001 + b"\nhi\n")
        assert process.returncode == 2
        assert b"the gateway takes 1,000,000" in err
        assert b"Short." in out

    play(scene)


def test_a_gateway_that_is_stopped_in_the_middle_of_an_answer_leaves_it_to_the_next_one(
    play: Callable[[Scene], None],
) -> None:
    """SPEC K6: SIGTERM drains; the run goes on at the next start, which is the chat's own."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        xclaw.home.mkdir()
        (xclaw.home / "config.toml").write_text("[gateway]\ndrain_s = 0.2\n")
        provider.queue(Raw(delta("Six times "), Until(asyncio.Event())), Text("Six times seven."))
        async with served(xclaw, env=env) as server, at_terminal(xclaw, env=env) as chat:
            await chat.expect(PROMPT)
            chat.type("what is it?")
            await chat.expect("Six times ")
            server.terminate()
            await server.wait()
            await chat.expect("seven.")
            await chat.expect(PROMPT)
            assert chat.text.count("Six times") == 1

    play(scene)
