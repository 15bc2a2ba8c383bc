"""A chat whose messages are piped in: one line, one message."""

from pathlib import Path
from typing import cast

import pytest
from xclaw_command import HELLO, Ended, Json, Xclaw

MIXED: list[object] = [{"agent": "orchestrator", "when": "fail", "replies": [{"fail": "rejected"}]}]


@pytest.fixture
def xclaw(tmp_path: Path) -> Xclaw:
    return Xclaw(tmp_path)


def chat(xclaw: Xclaw, script: list[object], *lines: str, arguments: tuple[str, ...] = ()) -> Ended:
    return xclaw("-m", xclaw.script(script), *arguments, stdin="".join(f"{line}\n" for line in lines))


def runs_of(xclaw: Xclaw) -> list[Json]:
    return cast("list[Json]", xclaw("tasks", "--json").document["runs"])


def echo(text: str) -> list[object]:
    return [{"agent": "orchestrator", "replies": [{"text": text}]}]


def test_each_line_is_a_message_of_one_conversation(xclaw: Xclaw) -> None:
    ended = chat(xclaw, echo("yes"), "first", "", "second")
    assert ended.code == 0
    assert ended.out.count("yes") == 2
    runs = runs_of(xclaw)
    assert [(run["title"], run["session_id"]) for run in runs] == [("second", "cli"), ("first", "cli")]


def test_commands_are_obeyed_and_cost_nothing(xclaw: Xclaw) -> None:
    ended = chat(
        xclaw,
        HELLO,
        "/cost",
        "/trace",
        "write hello",
        "/cost",
        "/trace",
        "/agents",
        "/tasks",
        "/help",
        "/quit",
        "no",
    )
    out = ended.out
    assert ended.code == 0
    assert "0 tokens, $0.00, 0 model calls" in out
    assert "nothing has run in this chat yet" in out
    assert "4 model calls" in out
    assert "└─ coder  delegate  success" in out
    assert "optimizer " in out
    assert "/cost      what this chat has used" in out
    assert out.count("All done") == 1


def test_a_new_session_forgets_the_old_one(xclaw: Xclaw) -> None:
    ended = chat(xclaw, echo("yes"), "first", "/new", "second", arguments=("--session", "mine"))
    runs = runs_of(xclaw)
    assert ended.code == 0
    newer, older = (str(run["session_id"]) for run in runs)
    assert older == "mine"
    assert newer.startswith("chat-")


def test_an_unknown_command_says_what_was_meant_and_is_not_sent(xclaw: Xclaw) -> None:
    ended = chat(xclaw, echo("yes"), "/tasl", "//etc is what?")
    assert "did you mean /task" in ended.err
    assert ended.out.count("yes") == 1
    runs = runs_of(xclaw)
    assert [run["title"] for run in runs] == ["/etc is what?"]


def test_a_line_that_ends_in_a_backslash_goes_on(xclaw: Xclaw) -> None:
    chat(xclaw, echo("yes"), "one \\", "two")
    tree = cast("Json", xclaw("trace", "--json").document["tree"])
    assert tree["task"] == "one \ntwo"


def test_an_error_ends_a_message_and_not_the_chat(xclaw: Xclaw) -> None:
    ended = chat(xclaw, [*MIXED, *echo("yes")], "fail", "read @none.txt", "go on")
    assert ended.out.splitlines()[-1] == "yes"
    assert "the run ended as error" in ended.err
    assert "@none.txt: there is no such file" in ended.err
    assert ended.code == 2
    assert "Traceback" not in ended.err


def test_without_a_model_the_chat_says_what_to_do(xclaw: Xclaw) -> None:
    ended = xclaw(stdin="hi\n")
    assert ended.code == 2
    assert "there is no model to run on" in ended.err
