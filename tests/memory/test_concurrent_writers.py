"""Several processes write the same memory and the same scratchpad; some die in the middle (SPEC I3, H4)."""

import asyncio
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from memory.writer_process import WHOSE, file_of, settings_in
from xclaw.memory.memory import FileMemory
from xclaw.memory.notes import notes_in
from xclaw.memory.scratchpad import FileScratchpad

WRITERS = 8
WRITES = 200
SCRIPT = str(Path(__file__).with_name("writer_process.py"))


def start(root: Path, kind: str, name: str, count: int, *more: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, SCRIPT, str(root), kind, name, str(count), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


@contextmanager
def running(processes: list[subprocess.Popen[str]]) -> Generator[list[subprocess.Popen[str]]]:
    try:
        yield processes
    finally:
        for process in processes:
            process.kill()
            process.communicate()


def go(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def texts_in(root: Path, kind: str) -> list[str]:
    if kind == "memory":
        return [note.text for note in notes_in(file_of(str(root), kind).read_text("utf-8"))]
    entry = asyncio.run(FileScratchpad(settings_in(str(root))).read(WHOSE, "log.md"))
    return entry.text.split("\n")


@pytest.mark.parametrize("kind", ["memory", "pad"])
def test_eight_processes_lose_nothing_although_one_dies_with_the_lock(kind: str, tmp_path: Path) -> None:
    """I3, H4, D01, D07: 200 writes each, and nobody waits for more than a second."""
    counts = {f"w{number}": WRITES for number in range(WRITERS)}
    counts["w0"] = WRITES // 2
    started = [
        start(tmp_path, kind, name, count, *(["die"] if name == "w0" else []))
        for name, count in counts.items()
    ]
    with running(started) as processes:
        for process in processes:
            go(process)
        ends = [process.communicate()[0] for process in processes]
    assert [process.returncode for process in processes] == [-9, *[0] * (WRITERS - 1)]
    texts = texts_in(tmp_path, kind)
    expected = {f"fact {at} of {name}" for name, count in counts.items() for at in range(count)}
    assert expected - set(texts) == set()
    assert len(texts) == len(expected)
    assert max(float(end) for end in ends) < 1.0


@pytest.mark.parametrize("kind", ["memory", "pad"])
def test_a_writer_that_was_killed_holds_nobody_up(kind: str, tmp_path: Path) -> None:
    """D01: the lock of a dead process is free at once, and what it left half written costs nothing."""
    with running([start(tmp_path, kind, "w0", 3, "die")]) as [victim]:
        go(victim)
        victim.communicate()
    with running([start(tmp_path, kind, "w1", 3)]) as [other]:
        go(other)
        assert float(other.communicate()[0]) < 1.0
    assert len(texts_in(tmp_path, kind)) == 6
    assert re.search(rb"\n$", file_of(str(tmp_path), kind).read_bytes())


def test_many_tasks_of_one_process_lose_nothing_and_do_not_hold_the_loop_up(tmp_path: Path) -> None:
    """D03, D07: writers wait in threads, so that the loop goes on; the same lock is never waited for by
    the thread that holds it."""

    async def main() -> float:
        memory, pad = FileMemory(settings_in(str(tmp_path)), None), FileScratchpad(settings_in(str(tmp_path)))
        loop = asyncio.get_running_loop()
        longest = 0.0

        async def beat(done: asyncio.Event) -> None:
            nonlocal longest
            while not done.is_set():
                began = loop.time()
                await asyncio.sleep(0)
                longest = max(longest, loop.time() - began)

        done = asyncio.Event()
        async with asyncio.timeout(30), asyncio.TaskGroup() as outer:
            outer.create_task(beat(done))
            async with asyncio.TaskGroup() as group:
                for at in range(20):
                    group.create_task(memory.remember(f"fact {at}", agent="coder"))
                    group.create_task(pad.append(WHOSE, "log.md", f"fact {at}", author="coder"))
            done.set()
        return longest

    assert asyncio.run(main()) < 0.2
    noted = FileMemory(settings_in(str(tmp_path)), None).notebook().listed()
    assert {filed.note.text for filed in noted} == {f"fact {at}" for at in range(20)}
    assert sorted(texts_in(tmp_path, "pad")) == sorted(f"fact {at}" for at in range(20))


def test_processes_that_write_and_ask_at_once_find_what_they_wrote(tmp_path: Path) -> None:
    """D05: nobody is told that a database is locked, and each finds its own note at once."""
    with running([start(tmp_path, "recall", f"w{number}", 25) for number in range(4)]) as processes:
        for process in processes:
            go(process)
        for process in processes:
            process.communicate()
        assert [process.returncode for process in processes] == [0] * 4
