"""How commands fail: one JSON document where JSON was asked for, and streams that are not there."""

import json
import logging
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from xclaw_command import TIMEOUT_S, Xclaw

from xclaw.cli.failures import LogLines

ECHO: list[object] = [{"agent": "orchestrator", "replies": [{"text": "the answer"}]}]


@pytest.mark.parametrize("form", ["json", "stream-json"])
@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (("run", "hi", "--nope"), "--nope"),
        (("run", "hi", "--budget-usd", "nan"), "--budget-usd"),
        (("run", "hi", "--max-turns", "0"), "--max-turns"),
        (("run", "hi", "--session", "a\x1bb"), "printable"),
        (("run", "hi", "--session", ""), "--session"),
        (("run", "hi", "--model", ""), "names no model"),
        (("resume", "nobody"), "there is no run 'nobody'"),
        (("resume", "nobody", "--all"), "not both"),
    ],
)
def test_wrong_use_of_any_kind_is_one_result_object(
    tmp_path: Path, arguments: tuple[str, ...], reason: str, form: str
) -> None:
    ended = Xclaw(tmp_path)(*arguments, "-o", form)
    result = ended.document
    assert (ended.code, result["type"], result["status"]) == (2, "result", "error")
    assert reason in str(result["reason"])
    assert reason in ended.err


@pytest.mark.parametrize(
    "arguments",
    [
        ("trace", "nobody"),
        ("trace", "--otlp", "http://127.0.0.1:1"),
        ("tasks", "nobody"),
        ("tasks", "--limit", "0"),
        ("cancel", "nobody"),
        ("cancel",),
        ("agents", "nobody"),
        ("config", "get", "nothing"),
        ("config", "frobnicate"),
    ],
)
def test_a_command_that_prints_json_says_in_json_why_it_failed(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = Xclaw(tmp_path)(*arguments, "--json")
    assert ended.code == 2
    assert list(ended.document) == ["error"]
    assert "Traceback" not in ended.err


def test_a_damaged_database_is_said_in_json_too(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    (tmp_path / "xclaw.db").write_bytes(b"this is no database")
    for command in ("trace", "tasks"):
        ended = xclaw(command, "--json", "-w", ".")
        assert ended.code == 1
        assert "not a database" in str(ended.document["error"])


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_streams_that_are_closed_are_as_good_as_none(tmp_path: Path, closed: tuple[int, ...]) -> None:
    """A file that takes a closed stream's number would get what is written to it."""
    xclaw = Xclaw(tmp_path)
    command = [sys.executable, "-m", "xclaw", "run", "hi", "-q", "-m", xclaw.script(ECHO)]
    redirections = " ".join(f"{number}>&-" for number in closed)
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *command],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env=xclaw.environment({}),
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert b"xclaw:" not in done.stderr
    assert done.stdout == (b"" if 1 in closed else b"the answer\n")
    assert xclaw("trace", "--json").code == 0


def test_output_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "xclaw", "run", "hi", "-m", xclaw.script(ECHO)],
            stdin=subprocess.DEVNULL,
            stdout=full,
            stderr=subprocess.PIPE,
            cwd=tmp_path,
            env=xclaw.environment({}),
            timeout=TIMEOUT_S,
            check=False,
        )
    assert done.returncode != 0
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_a_number_of_thousands_of_digits_is_a_mistake_in_the_file(tmp_path: Path) -> None:
    (tmp_path / "xclaw.toml").write_text(f"[runtime]\nmax_depth = {'9' * 5000}\n", "utf-8")
    ended = Xclaw(tmp_path)("run", "hi", "-o", "json")
    assert ended.code == 2
    assert "xclaw.toml: not valid TOML" in str(ended.document["reason"])


def test_a_pipe_in_the_databases_place_holds_nobody_up(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "xclaw.db")
    xclaw = Xclaw(tmp_path)
    ended = xclaw("run", "hi", "-m", xclaw.script(ECHO), "-w", ".")
    assert ended.code == 2
    assert "no regular file" in ended.err
    assert "no regular file" in xclaw("doctor", "-w", ".").out


def test_doctor_sees_the_empty_database_that_a_run_would_refuse(tmp_path: Path) -> None:
    (tmp_path / "xclaw.db").touch()
    ended = Xclaw(tmp_path)("doctor", "-w", ".")
    assert ended.code == 1
    assert "an empty file" in ended.out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_comes_before_the_command_is_one_result_object(
    tmp_path: Path, number: signal.Signals
) -> None:
    xclaw = Xclaw(tmp_path)
    code = (
        "import os, sys, xclaw.cli.main as command\n"
        "takes_time = command.prepare_streams\n"
        "def prepare_streams():\n"
        "    takes_time()\n"
        f"    os.kill(os.getpid(), {int(number)})\n"
        "command.prepare_streams = prepare_streams\n"
        "command.main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "run", "hi", "-o", "json", "-m", xclaw.script(ECHO)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env=xclaw.environment({}),
        timeout=TIMEOUT_S,
        check=False,
    )
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"]) == (130, "interrupted")
    assert b"Traceback" not in done.stderr


def test_a_hang_up_is_ignored_where_it_was_ignored_before() -> None:
    """What nohup sets up; the handler must not be replaced."""
    code = (
        "import asyncio, signal\n"
        "from xclaw.cli.watching import Interrupts\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "async def main():\n"
        "    Interrupts().install()\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
        "    await asyncio.sleep(0)\n"
        "    print(signal.getsignal(signal.SIGHUP) == signal.SIG_IGN)\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=TIMEOUT_S, check=False)
    assert (done.returncode, done.stdout) == (0, b"True\n")


def test_a_long_temporary_directory_keeps_nobody_from_working(tmp_path: Path) -> None:
    """A socket's path is 107 bytes at most."""
    long = tmp_path / ("t" * 120)
    long.mkdir()
    xclaw = Xclaw(tmp_path)
    assert xclaw("run", "hi", "-m", xclaw.script(ECHO), TMPDIR=str(long)).code == 0
    assert list(long.iterdir()) == []


def test_a_working_directory_that_is_gone_is_said(tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["sh", "-c", 'rmdir "$PWD"; exec "$@"', "sh", sys.executable, "-m", "xclaw", "tasks", "--json"],
        capture_output=True,
        cwd=tmp_path / "gone",
        env=Xclaw(tmp_path).environment({}),
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 2
    assert b"the working directory is gone" in done.stdout


def test_a_journal_that_fails_in_the_middle_is_an_honest_end(tmp_path: Path) -> None:
    """What was spent is told, and no traceback."""
    xclaw = Xclaw(tmp_path)
    model = xclaw.script([{"agent": "orchestrator", "replies": [{"text": "x" * 2_000_000}]}])
    limit = 500_000

    def no_large_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    done = subprocess.run(
        [sys.executable, "-m", "xclaw", "run", "hi", "-o", "json", "-m", model],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        cwd=tmp_path,
        env=xclaw.environment({}),
        timeout=TIMEOUT_S,
        check=False,
        preexec_fn=no_large_files,
    )
    result = json.loads(done.stdout)
    assert (done.returncode, result["status"], result["usage"]["calls"]) == (1, "interrupted", 1)
    assert "the journal failed" in result["reason"]
    assert b"Traceback" not in done.stderr


def test_what_is_logged_is_a_line_that_controls_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XCLAW_DEBUG", raising=False)
    logger = logging.getLogger("xclaw.somebody")
    monkeypatch.setattr(logger, "handlers", [])
    monkeypatch.setattr(logger, "propagate", False)
    logger.addHandler(LogLines())
    logger.info("of no interest")
    try:
        raise ValueError("\x1b]0;title\x07bad")
    except ValueError:
        logger.exception("run %s failed", "\x1b[2Jr1")
    assert capsys.readouterr().err == "xclaw: run r1 failed: ValueError: bad\n"
