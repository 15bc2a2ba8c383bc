"""A user's own script as the loop of a run: a Python process beside the worker, which answers its calls."""

import asyncio
import json
import os
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, Process
from collections import deque
from contextlib import suppress
from typing import Any, cast

from xclaw.contracts.artifacts import Pointer
from xclaw.loop.parts import Ending
from xclaw.runtime.assembly import Live
from xclaw.runtime.shield import to_the_end
from xclaw.script import DESCRIPTOR, MAX_LINE
from xclaw.worker.script_calls import ScriptCalls, ScriptFailure

TAIL_BYTES = 8_192
REASON_CHARS = 1_500
LAST_CHARS = 300
TEXT_CHARS = 8_000


DRAIN_S = 1.0
"""How long the outputs of a script that has ended are read."""


class _Output(asyncio.Protocol):
    """The last of what a pipe brought. A pipe of its own: asyncio's would have the script's end wait for
    whoever else holds it open."""

    def __init__(self) -> None:
        self.over = asyncio.get_running_loop().create_future()
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._chunks.append(data)
        self._size += len(data)
        while self._size - len(self._chunks[0]) > TAIL_BYTES:
            self._size -= len(self._chunks.popleft())

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.over.done():
            self.over.set_result(None)

    def text(self) -> str:
        return b"".join(self._chunks)[-TAIL_BYTES:].decode("utf-8", "replace").strip()

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()


async def _output() -> tuple[_Output, int]:
    """What is read, and the descriptor to write to, which is the caller's to close."""
    reading, writing = os.pipe()
    _, output = await asyncio.get_running_loop().connect_read_pipe(_Output, os.fdopen(reading, "rb"))
    return output, writing


async def run_script(live: Live, command: tuple[str, ...]) -> Ending:
    """Run the script to its end. Cancelling it kills the script; the keeper kills what that leaves.

    Raises `JournalError`.
    """
    (out, out_end), (err, err_end) = await _output(), await _output()
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-u",
            *command,
            stdin=DEVNULL,
            stdout=out_end,
            stderr=err_end,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, DESCRIPTOR: str(theirs.fileno())},
        )
    except (OSError, ValueError) as failure:
        ours.close()
        return Ending("error", reason=f"the script {command[0]!r} could not be started: {failure}")
    finally:
        theirs.close()
        os.close(out_end)
        os.close(err_end)
    calls = ScriptCalls(live)
    loop = asyncio.get_running_loop()
    exiting, answering = loop.create_task(process.wait()), loop.create_task(_answer(ours, calls))
    try:
        # It ends by exiting or by a call that cannot be answered; hanging up alone is neither.
        await asyncio.wait([exiting, answering], return_when=asyncio.FIRST_COMPLETED)
        if answering.done() and not _hung_up(answering):
            _kill(process)
        await asyncio.wait([exiting])
        # What it left in the background may hold its outputs and its line open.
        await asyncio.wait([answering, out.over, err.over], timeout=DRAIN_S)
    finally:
        _kill(process)
        answering.cancel()
        await to_the_end(_all_done(exiting, answering))
        out.close()
        err.close()
    fault = "" if answering.cancelled() else answering.result()
    return _ending(live, process, calls, fault, (out.text(), err.text()))


async def _all_done(*tasks: asyncio.Task[Any]) -> None:
    await asyncio.wait(tasks)


def _hung_up(answering: asyncio.Task[str]) -> bool:
    return answering.exception() is None and not answering.result()


def _kill(process: Process) -> None:
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.kill()


async def _answer(ours: socket.socket, calls: ScriptCalls) -> str:
    """Answer calls until the script has hung up; what it did wrong, if it did."""
    ours.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=ours, limit=MAX_LINE * 2)
    try:
        while line := await reader.readline():
            fields = _fields(line)
            if fields is None:
                return "it sent something that is no call"
            writer.write(json.dumps(await _answered(calls, fields)).encode() + b"\n")
            await writer.drain()
    except ValueError:
        return "it sent a line that is too long"
    except ConnectionError:
        return ""
    finally:
        writer.close()
    return ""


async def _answered(calls: ScriptCalls, fields: dict[str, object]) -> dict[str, object]:
    try:
        return {"value": await calls.call(fields)}
    except ScriptFailure as failure:
        return {"error": str(failure), "kind": failure.kind}
    except ValueError as failure:
        return {"error": f"the call cannot be read: {failure}", "kind": ""}


def _fields(line: bytes) -> dict[str, object] | None:
    try:
        value = cast("object", json.loads(line))
    except (ValueError, RecursionError):
        return None
    return cast("dict[str, object]", value) if isinstance(value, dict) else None


def _ending(live: Live, process: Process, calls: ScriptCalls, fault: str, tails: tuple[str, str]) -> Ending:
    out, err = tails
    code = process.returncode
    pointers = _pointers(live)
    if calls.failed or fault:
        return Ending("error", out, calls.failed or f"the script was ended: {fault}", None, pointers)
    if calls.finished is not None:
        data, text = calls.finished
        return Ending("success", text or out[-TEXT_CHARS:], "", _summary(live, data, text), pointers)
    if code == 0:
        return Ending("success", out[-TEXT_CHARS:], "", _summary(live, None, out), pointers)
    how = f"exit code {code}" if code is None or code >= 0 else signal.Signals(-code).name
    last = f": {err.splitlines()[-1][:LAST_CHARS]}; it wrote last:\n{err[-REASON_CHARS:]}" if err else ""
    return Ending("error", out[-TEXT_CHARS:], f"the script ended with {how}{last}", None, pointers)


def _summary(live: Live, data: object, text: str) -> object:
    """A structured result has data (SPEC E1): the script's, else what it wrote."""
    task = live.parts.task
    if data is None and task is not None and task.structured:
        return {"output": text[-TEXT_CHARS:]}
    return data


def _pointers(live: Live) -> tuple[tuple[str, Pointer], ...]:
    return tuple((pointer.path.rsplit("/", 1)[-1], pointer) for pointer in live.parts.state.delivered)
