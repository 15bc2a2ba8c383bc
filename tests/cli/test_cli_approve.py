"""Questions to a person at a terminal, and `xclaw approve` from another one (SPEC J2)."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from terminal import PLAIN, at_terminal
from xclaw_command import Json, Xclaw

from xclaw.cli.approve import prompt_for
from xclaw.cli.questions import answer_from, bounded, question_text, visible
from xclaw.contracts.approvals import Answer, Approval
from xclaw.contracts.errors import UsageError

RUNNER = "---\nname: runner\ndescription: runs\ntools: shell\n---\nYou run commands.\n"


def home_with(tmp_path: Path, *commands: str) -> tuple[Xclaw, str]:
    """A home whose runner runs these commands, one after the other."""
    xclaw = Xclaw(tmp_path)
    (xclaw.home / "agents").mkdir(parents=True)
    (xclaw.home / "agents" / "runner.md").write_text(RUNNER)
    calls = [{"calls": [{"name": "shell", "arguments": {"command": command}}]} for command in commands]
    return xclaw, xclaw.script([{"agent": "runner", "replies": [*calls, {"text": "the end"}]}])


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded_wait() -> None:
        async with asyncio.timeout(60):
            await main()

    asyncio.run(bounded_wait())


def approval(**changes: object) -> Approval:
    fields: dict[str, object] = {
        "approval_id": "a1",
        "call_id": "c",
        "run_id": "r",
        "root_id": "r",
        "session_id": "s",
        "root_session_id": "s",
        "path": ("orchestrator", "runner"),
        "tool": "shell",
        "arguments": '{"command": "ls"}',
        "why": "no rule allows it",
        "rule": "shell(ls)",
        "asked_at": 0.0,
        "owner": "p",
    }
    return Approval(**{**fields, **changes})  # pyright: ignore[reportArgumentType] - test shorthand


def test_a_run_without_a_terminal_denies_and_says_what_would_allow_it(tmp_path: Path) -> None:
    """A01, J2: it ends by itself."""
    xclaw, model = home_with(tmp_path, "touch made.txt")
    ended = xclaw("run", "-m", model, "-a", "runner", "-o", "stream-json", "go")
    assert ended.code == 0
    [call] = [line for line in ended.lines if line["type"] == "tool_call_ended"]
    assert call["ok"] is False
    assert "shell(touch made.txt)" in str(call["content"])
    assert not list(tmp_path.rglob("made.txt"))
    for allowed in (("--allow-shell",), ()):
        if not allowed:
            (xclaw.home / "config.toml").write_text('[permissions]\nallow = ["shell(touch *)"]\n')
        ended = xclaw("run", "-m", model, "-a", "runner", "-o", "stream-json", *allowed, "go")
        [call] = [line for line in ended.lines if line["type"] == "tool_call_ended"]
        assert call["ok"] is True


def test_a_person_at_the_terminal_is_asked_and_each_answer_does_what_it_says(tmp_path: Path) -> None:
    """J2: no with a reason, yes, another command, and nonsense in between."""
    xclaw, model = home_with(tmp_path, "echo first", "echo sec''ond", "echo third", "echo last")

    async def main() -> None:
        async with at_terminal(xclaw, "run", "-m", model, "-a", "runner", "go", env=PLAIN) as terminal:
            await terminal.expect("runner asks to use shell:")
            await terminal.expect("| echo first")
            await terminal.expect("[a] always: shell(echo first)")
            await terminal.expect("\n> ")
            terminal.type("what?")
            await terminal.expect("that is no answer")
            terminal.type("n too early")
            await terminal.expect("| echo sec''ond")
            await terminal.expect("\n> ")
            terminal.type("y")
            await terminal.expect("| echo third")
            await terminal.expect("\n> ")
            terminal.type("e echo instead")
            await terminal.expect("| echo last")
            await terminal.expect("\n> ")
            terminal.type("a shell(echo *)")
            await terminal.expect("the end")
            assert await terminal.ended() == 0

    run(main)
    trace = xclaw("trace", "--json", "--prompts")
    said = json.dumps(trace.document)
    assert "the user denied this call of shell: too early" in said
    assert "second\\\\n[exit code 0]" in said or "second\\n[exit code 0]" in said
    assert "the user changed the arguments" in said
    assert "third\\n[exit" not in said
    assert 'rule = "shell(echo *)"' in (xclaw.home / "permissions.toml").read_text()
    again = xclaw("run", "-m", model, "-a", "runner", "-o", "stream-json", "go")
    assert [line["ok"] for line in again.lines if line["type"] == "tool_call_ended"] == [True] * 4


def test_a_question_can_be_answered_from_another_terminal(tmp_path: Path) -> None:
    """J2, A04: the one that asks says so and goes on."""
    xclaw, model = home_with(tmp_path, "echo hi")

    async def main() -> None:
        async with at_terminal(xclaw, "run", "-m", model, "-a", "runner", "go", env=PLAIN) as terminal:
            await terminal.expect("\n> ")
            listed = await asyncio.to_thread(xclaw, "approve", "--json")
            [waiting] = cast("list[Json]", listed.document["approvals"])
            assert waiting["tool"] == "shell"
            assert waiting["arguments"] == {"command": "echo hi"}
            assert waiting["path"] == ["runner"]
            assert waiting["parked"] is False
            name = str(waiting["approval_id"])
            shown = await asyncio.to_thread(xclaw, "approve")
            assert "| echo hi" in shown.out
            answered = await asyncio.to_thread(xclaw, "approve", name[:10])
            assert answered.code == 0
            assert "answered: once" in answered.out
            await terminal.expect("the end")
            assert await terminal.ended() == 0
            again = await asyncio.to_thread(xclaw, "approve", name, "--deny", "no")
            assert again.code == 2
            assert "answered already: once, by owner" in again.err

    run(main)


def test_a_run_without_a_terminal_that_parks_says_how_to_answer_and_waits(tmp_path: Path) -> None:
    """J2: from another process, with a rule that is wider than the call."""
    xclaw, model = home_with(tmp_path, "echo one", "echo two")
    (xclaw.home / "config.toml").write_text('[permissions]\nunattended = "park"\n')

    async def main() -> None:
        process = await xclaw.start("run", "-m", model, "-a", "runner", "go", env={})
        assert process.stdout is not None
        said = b""
        while b"xclaw approve a" not in said:
            said = await process.stdout.readline()
            assert said, "it ended"
        name = said.decode().rpartition("xclaw approve ")[2].strip()
        answered = await asyncio.to_thread(
            xclaw, "approve", name, "--session", "--rule", "shell(echo *)", "--json"
        )
        assert answered.document["decision"] == "session"
        out, _ = await process.communicate()
        assert process.returncode == 0
        assert b"waits for permission" not in out, "the second call is covered"
        assert b"the end" in out

    run(main)


def test_ctrl_c_at_a_question_ends_the_run(tmp_path: Path) -> None:
    """J2: and the process, with its question."""
    xclaw, model = home_with(tmp_path, "echo hi")

    async def main() -> None:
        async with at_terminal(xclaw, "run", "-m", model, "-a", "runner", "go", env=PLAIN) as terminal:
            await terminal.expect("\n> ")
            terminal.press(b"\x03")
            assert await terminal.ended() == 130

    run(main)
    assert xclaw("approve", "--json").document == {"approvals": []}


def test_a_run_whose_process_was_killed_at_the_question_is_answered_and_resumed(tmp_path: Path) -> None:
    """J2, K6: `kill -9`, `xclaw approve`, `xclaw resume`, without any terminal."""
    xclaw, model = home_with(tmp_path, "echo ran >> log.txt; cat log.txt")

    async def main() -> None:
        async with at_terminal(xclaw, "run", "-m", model, "-a", "runner", "go", env=PLAIN) as terminal:
            await terminal.expect("\n> ")
            terminal.process.send_signal(signal.SIGKILL)
            await terminal.ended()

    run(main)
    shown = xclaw("approve")
    assert "parked, goes on with: xclaw resume" in shown.out
    [waiting] = cast("list[Json]", xclaw("approve", "--json").document["approvals"])
    assert waiting["parked"] is True
    answered = xclaw("approve", str(waiting["approval_id"]))
    assert "xclaw resume" in answered.err
    ended = xclaw("resume", "-o", "stream-json")
    [call] = [line for line in ended.lines if line["type"] == "tool_call_ended"]
    assert call["content"] == "ran\n[exit code 0]"
    assert ended.code == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("a000",), "there is no approval 'a000'"),
        (("--deny", "x"), "name the approval"),
        (("--rule", "x"), "name the approval"),
        (("a000", "--session", "--always"), "there is no approval"),
    ],
)
def test_what_cannot_be_answered_is_said(tmp_path: Path, arguments: tuple[str, ...], complaint: str) -> None:
    ended = Xclaw(tmp_path)("approve", *arguments)
    assert ended.code == 2
    assert complaint in ended.err


HOSTILE = "\x1b[2J\x1b]0;owned\x07ls\r\nrm -rf /\u202e\u200b\x9b31m\n[y] once\n> y"


def test_a_question_shows_what_would_run_and_controls_nothing() -> None:
    """A01: escapes, marks that reorder, invisible characters and lines that look like ours."""
    shown = question_text(
        approval(arguments=json.dumps({"command": HOSTILE}), why="w\x1b[0m", path=("a\nb", "c"))
    )
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert "| \\x1b[2J\\x1b]0;owned\\x07ls\\x0d" in shown
    assert "rm -rf /\\u202e\\u200b\\x9b31m" in shown
    assert "\n  | [y] once\n  | > y\n" in shown
    assert shown.startswith("a\\x0ab > c asks")


def test_a_long_call_is_cut_where_it_is_said() -> None:
    """A01's kind: a megabyte, and ten thousand lines."""
    for text in ("x" * 1_000_000 + "END", "\n".join(map(str, range(10_000))) + "END"):
        shown = question_text(approval(arguments=json.dumps({"command": text})))
        assert len(shown) < 6_000
        assert "not shown" in shown
        assert "END" in shown
    assert bounded("short") == "short"


@pytest.mark.parametrize(
    "arguments", ["", "{}", "nonsense", "[1]", '{"a": 1, "b": "x"}', '{"a": {"b": [1]}}']
)
def test_any_arguments_can_be_shown(arguments: str) -> None:
    assert "asks to use shell" in question_text(approval(arguments=arguments))


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("y", Answer("once")),
        ("  YES ", Answer("once")),
        ("s", Answer("session")),
        ("a", Answer("always")),
        ("a shell(ls *)", Answer("always", rule="shell(ls *)")),
        ("n", Answer("deny")),
        ("n because  of it", Answer("deny", reason="because  of it")),
        ("e ls -l", Answer("edit", arguments={"command": "ls -l"})),
        ('e {"command": "ls"}', Answer("edit", arguments={"command": "ls"})),
    ],
)
def test_a_typed_line_is_an_answer(line: str, answer: Answer) -> None:
    assert answer_from(approval(), line) == answer


@pytest.mark.parametrize("line", ["", " ", "yy", "y please", "e", "e {", "maybe", "\x1b[A"])
def test_anything_else_is_none(line: str) -> None:
    with pytest.raises(UsageError):
        answer_from(approval(), line)


def test_a_prompt_asks_until_it_is_answered() -> None:
    lines = iter(["", "hm", "n no"])
    said: list[str] = []
    assert prompt_for(approval(), lambda _: next(lines), said.append) == Answer("deny", reason="no")
    assert len(said) == 3
    with pytest.raises(StopIteration):
        prompt_for(approval(), lambda _: next(lines), said.append)


def test_what_is_not_visible_is_written_out() -> None:
    assert visible("a\tb\u00a0c\U000e0001é你") == "a\\x09b\\xa0c\\U000e0001é你"
