"""Ctrl-C, SIGTERM, kill and cancel, on processes that wait for a provider."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import cast

import pytest
from xclaw_command import Json, Xclaw

from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Calls, Raw, Text, Until, delta

WAIT_S = 100.0
PIPE = asyncio.subprocess.PIPE
Process = asyncio.subprocess.Process


def against_a_provider(
    directory: Path, scene: Callable[[Xclaw, FakeProvider, dict[str, str]], Awaitable[None]]
) -> None:
    """Play a scene with a provider in this process and commands in others."""

    async def main() -> None:
        async with asyncio.timeout(WAIT_S), FakeProvider() as provider:
            env = {"OPENAI_BASE_URL": provider.url, "OPENAI_API_KEY": "k", "OPENAI_MODEL": "m"}
            await scene(Xclaw(directory), provider, env)

    asyncio.run(main())


async def read_until(process: Process, text: str) -> str:
    """What the process writes to standard output, up to and with `text`."""
    assert process.stdout is not None
    seen = ""
    while text not in seen:
        piece = await process.stdout.read(1000)
        assert piece, f"ended before it said {text!r}: {seen!r}"
        seen += piece.decode()
    return seen


async def rest_of(process: Process) -> tuple[int, str, str]:
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


async def ended(xclaw: Xclaw, *arguments: str, env: dict[str, str]) -> tuple[int, str, str]:
    return await rest_of(await xclaw.start(*arguments, env=env))


def never_ending(text: str) -> Raw:
    """An answer that begins with `text` and never ends."""
    return Raw(delta(text), Until(asyncio.Event()))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_the_run_and_keeps_what_it_said(tmp_path: Path, number: signal.Signals) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(never_ending("half an answer"))
        process = await xclaw.start("run", "hi", "-o", "stream-json", env=env)
        await read_until(process, "half an answer")
        process.send_signal(number)
        code, out, err = await rest_of(process)
        result = cast("Json", json.loads(out.splitlines()[-1]))
        assert (code, result["type"], result["status"]) == (130, "result", "cancelled")
        assert result["text"] == "half an answer"
        assert "interrupted by the user" in str(result["reason"])
        assert "stopping the run" in err
        assert "Traceback" not in err
        await provider.requests[0].closed.wait()

    against_a_provider(tmp_path, scene)


def test_cancel_ends_a_run_of_another_process_and_says_how_each_part_ended(tmp_path: Path) -> None:
    """C05."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        task = json.dumps({"agent": "coder", "task": "Write a haiku about the sea."})
        provider.queue(Calls(("c1", "delegate", task)), never_ending("Waves\n"))
        process = await xclaw.start("run", "hi", env=env)
        await read_until(process, "[coder] Waves")
        code, out, _ = await ended(xclaw, "cancel", "last", "--reason", "enough", "--json", env=env)
        ends = cast("list[Json]", json.loads(out)["ends"])
        assert code == 0
        assert {(end["agent"], end["outcome"]) for end in ends} == {
            ("coder", "cancelled"),
            ("orchestrator", "cancelled"),
        }
        code, out, err = await rest_of(process)
        assert code == 130
        assert "[coder] done (cancelled" in out
        assert "enough" in err

    against_a_provider(tmp_path, scene)


def test_a_killed_run_is_announced_listed_and_resumed(tmp_path: Path) -> None:
    """K6."""

    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        task = json.dumps({"agent": "coder", "task": "Write a haiku about the sea."})
        provider.queue(Calls(("c1", "delegate", task)), never_ending("Waves\n"))
        process = await xclaw.start("run", "hi", "-s", "mine", env=env)
        await read_until(process, "[coder] Waves")
        process.kill()
        await rest_of(process)
        _, out, _ = await ended(xclaw, "tasks", "--json", env=env)
        (row,) = cast("list[Json]", json.loads(out)["runs"])
        assert row["status"] == "interrupted"
        provider.queue(Text("hello"))
        _, _, err = await ended(xclaw, "run", "other", "-q", env=env)
        assert "1 interrupted run: xclaw resume" in err
        form = '{"status": "success", "summary_data": {"haiku": "Waves"}, "artifact_pointers": {}}'
        provider.queue(Text(form), Text("Here it is."))
        code, out, err = await ended(xclaw, "resume", env=env)
        assert code == 0
        assert f"resuming {row['run_id']}" in err
        assert out.splitlines()[-2:] == ["[coder] done", "Here it is."]
        assert len(provider.requests) == 5
        code, out, err = await ended(xclaw, "resume", env=env)
        assert (code, out) == (0, "")
        assert "nothing to resume" in err

    against_a_provider(tmp_path, scene)


def test_a_chat_survives_an_interrupted_message(tmp_path: Path) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(never_ending("half an answer"), Text("whole"))
        process = await xclaw.start("chat", stdin=PIPE, env=env)
        assert process.stdin is not None
        process.stdin.write(b"first\n")
        await read_until(process, "half an answer")
        process.send_signal(signal.SIGINT)
        process.stdin.write(b"second\n")
        process.stdin.close()
        code, out, err = await rest_of(process)
        assert out.splitlines()[-1] == "whole"
        assert "the run ended as cancelled" in err
        assert code == 130
        assert "Traceback" not in err

    against_a_provider(tmp_path, scene)


def test_a_chat_that_is_ended_from_outside_ends_its_run(tmp_path: Path) -> None:
    async def scene(xclaw: Xclaw, provider: FakeProvider, env: dict[str, str]) -> None:
        provider.queue(never_ending("half an answer"))
        process = await xclaw.start("chat", stdin=PIPE, env=env)
        assert process.stdin is not None
        process.stdin.write(b"first\n")
        await read_until(process, "half an answer")
        process.send_signal(signal.SIGTERM)
        code, _, err = await rest_of(process)
        assert code == 130
        assert "Traceback" not in err
        _, out, _ = await ended(xclaw, "tasks", "--json", env=env)
        (row,) = cast("list[Json]", json.loads(out)["runs"])
        assert row["status"] == "cancelled"

    against_a_provider(tmp_path, scene)
