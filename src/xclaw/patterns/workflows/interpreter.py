"""The interpreter of a workflow script, as the runtime has it: a process of its own, and a line to it."""

import asyncio
import contextlib
import json
import os
import signal
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec

from xclaw.contracts.cancellation import finished
from xclaw.contracts.errors import ToolFailed
from xclaw.patterns.workflows.settings import WorkflowSettings

MAX_LINE = 4 * 1024 * 1024
CHECK_S = 20.0
END_S = 5.0
_STDERR_BYTES = 4_096
_ROOT = str(Path(__file__).parents[3])
_START = "import sys; sys.path.append(sys.argv[1]); from xclaw.patterns.workflows.child import main; main()"


class Interpreter:
    """One process that runs one script. Made by `started`, which ends it."""

    def __init__(self, process: Process) -> None:
        self._process = process

    def send(self, said: dict[str, object]) -> None:
        """Raises `ToolFailed` when it has stopped reading."""
        assert self._process.stdin is not None
        if self._process.stdin.transport.get_write_buffer_size() > MAX_LINE * 4:
            raise ToolFailed("the workflow's interpreter has stopped reading")
        # What an agent answered may hold half a character, which no line can.
        self._process.stdin.write(json.dumps(said, ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    async def receive(self) -> dict[str, object] | None:
        """What it says next; None when it has ended. Raises `ToolFailed` for anything that is no JSON
        object."""
        assert self._process.stdout is not None
        try:
            line = await self._process.stdout.readline()
        except ValueError:
            raise ToolFailed(f"the workflow said more than {MAX_LINE} bytes at once") from None
        if not line:
            return None
        try:
            return msgspec.json.decode(line, type=dict[str, object])
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise ToolFailed("the workflow's interpreter said something that is no JSON") from None

    async def how_it_ended(self) -> str:
        """After its last line, in words."""
        assert self._process.stderr is not None
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                code = await self._process.wait()
                tail = (await self._process.stderr.read(_STDERR_BYTES)).decode("utf-8", "replace").strip()
                return _in_words(code) + (f" ({tail[-500:]})" if tail else "")
        return "its interpreter went silent"


def _in_words(code: int) -> str:
    match -code:
        case 24 | 9:
            return "its interpreter was killed: it used too much processor time"
        case 31:
            return "its interpreter was killed: it reached for what a workflow has not"
        case number if number > 0:
            return f"its interpreter was killed by signal {number}"
        case _:
            return f"its interpreter ended with {code}"


@asynccontextmanager
async def started(
    script: str, settings: WorkflowSettings, *, only_check: bool = False
) -> AsyncGenerator[Interpreter]:
    """A fresh interpreter on this script, for as long as the block lasts. Then it is dead, whatever happens.

    Isolated mode, no site packages, no environment, an empty directory that is removed at once, no
    descriptor but three pipes. Raises `ToolFailed` when it cannot be started.
    """
    with tempfile.TemporaryDirectory(prefix="xclaw-workflow-") as directory:
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-I", "-S", "-E", "-B", "-X", "utf8", "-c", _START, _ROOT,
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                cwd=directory,
                env={},
                limit=MAX_LINE,
                start_new_session=True,  # Ctrl-C reaches xclaw, which then ends it
            )  # fmt: skip
        except OSError as error:
            raise ToolFailed(f"the workflow's interpreter could not be started: {error.strerror}") from error
        try:
            interpreter = Interpreter(process)
            interpreter.send(
                {
                    "script": script,
                    "only_check": only_check,
                    "memory_bytes": settings.memory_bytes,
                    "processor_s": settings.processor_s,
                }
            )
            yield interpreter
        finally:
            await _kill(process)


async def _kill(process: Process) -> None:
    """It has no children, cannot catch this, and is reaped even if this is cancelled meanwhile."""
    if process.returncode is None:
        # Not process.kill(), which may reap it behind the back of the loop, which waits for it too.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGKILL)
    # Alone, `wait` would wait for ever for what the script said and nobody read (asyncio up to Python 3.12).
    await finished(process.communicate())
