"""The command itself: which command is meant, help, version, and wrong use."""

from pathlib import Path

import pytest
from xclaw_command import Xclaw

from xclaw.cli.main import with_command


@pytest.mark.parametrize(
    ("arguments", "meant"),
    [
        ([], ["chat"]),
        (["--model", "a:b"], ["chat", "--model", "a:b"]),
        (["-p", "hi"], ["run", "-p", "hi"]),
        (["--model", "a:b", "-p", "hi"], ["run", "--model", "a:b", "-p", "hi"]),
        (["run", "hi"], ["run", "hi"]),
        (["--help"], ["--help"]),
        (["-V"], ["-V"]),
    ],
)
def test_a_left_out_command_is_chat_or_with_p_run(arguments: list[str], meant: list[str]) -> None:
    assert with_command(arguments) == meant


def test_help_names_all_commands_and_imports_nothing_heavy(tmp_path: Path) -> None:
    ended = Xclaw(tmp_path)("--help", PYTHONPROFILEIMPORTTIME="1")
    assert ended.code == 0
    for command in ("chat", "run", "resume", "trace", "tasks", "cancel", "agents", "doctor", "config"):
        assert f"\n  {command} " in ended.out
    assert "..." not in ended.out.partition("Commands:")[2], "a command's line is cut off"
    imported = {
        line.rpartition("|")[2].strip() for line in ended.err.splitlines() if line.startswith("import time")
    }
    assert "xclaw.cli.main" in imported
    assert {"rich", "aiohttp", "sqlite3", "yaml", "asyncio", "genai_prices", "xclaw.app"} & imported == set()
    assert {"xclaw.contracts.sessions", "xclaw.contracts.events"} & imported == set(), "forty milliseconds"


def test_the_version_is_shown(tmp_path: Path) -> None:
    assert Xclaw(tmp_path)("--version").out.startswith("xclaw ")


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["runn"], "No such command 'runn'. Did you mean 'run'?"),
        (["Compare two things"], 'Error: A text is no command. Send it with: xclaw run "..."\n'),
        (["run", "--mode", "ful", "hi"], "Invalid value for '--mode': 'ful' is not one of 'host', 'full'."),
        (["run", "--output-format", "xml", "hi"], "xml"),
        (["run", "--max-turns", "0", "hi"], "--max-turns"),
        (["run", "--budget-usd", "-1", "hi"], "--budget-usd"),
        (["run", "--session", "a\nb", "hi"], "printable"),
        (["resume", "r1", "--all"], "not both"),
    ],
)
def test_wrong_use_exits_with_2_and_says_what_is_wrong(
    tmp_path: Path, arguments: list[str], reason: str
) -> None:
    ended = Xclaw(tmp_path)(*arguments)
    assert (ended.code, ended.out) == (2, "")
    assert reason in ended.err
    assert "Traceback" not in ended.err
