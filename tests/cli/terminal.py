"""A person at a terminal: a pseudo-terminal with a real command on it, read as it comes."""

import asyncio
import os
import pty
import re
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress

from xclaw_command import Xclaw

PLAIN = {"NO_COLOR": "1", "TERM": "xterm"}
"""Lines instead of a picture, so that everything that is said can be counted."""
PROMPT = "you> "
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[=>]|\r")


class Terminal:
    """What the command has written so far, and what is typed to it."""

    def __init__(self, process: asyncio.subprocess.Process, descriptor: int) -> None:
        self.process = process
        self._descriptor = descriptor
        self._raw = ""
        self._seen = 0
        self._more = asyncio.Event()
        self._gone = False
        asyncio.get_running_loop().add_reader(descriptor, self._read)

    @property
    def text(self) -> str:
        """Everything, without control sequences."""
        return _SEQUENCE.sub("", self._raw)

    async def expect(self, text: str) -> str:
        """Wait until it was said, after what was waited for before; answers what came up to it."""
        while True:
            at = self.text.find(text, self._seen)
            if at >= 0:
                before, self._seen = self.text[self._seen : at], at + len(text)
                return before
            assert not self._gone, f"ended before it said {text!r}: {self.text[self._seen :]!r}"
            self._more.clear()
            try:
                async with asyncio.timeout(30):
                    await self._more.wait()
            except TimeoutError:
                raise AssertionError(f"did not say {text!r}: {self.text[self._seen :]!r}") from None

    def type(self, line: str) -> None:
        os.write(self._descriptor, f"{line}\n".encode())

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    async def ended(self) -> int:
        return await self.process.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        with suppress(OSError):
            os.close(self._descriptor)

    def _read(self) -> None:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:
            data = b""
        if not data:
            self._gone = True
            asyncio.get_running_loop().remove_reader(self._descriptor)
        self._raw += data.decode("utf-8", "replace")
        self._more.set()


@asynccontextmanager
async def at_terminal(xclaw: Xclaw, *arguments: str, env: Mapping[str, str]) -> AsyncGenerator[Terminal]:
    """The command on a terminal of its own; it is killed at the end of the block if it still runs."""
    ours, theirs = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        # The terminal must be the controlling one, so that Ctrl-C is a signal.
        "import fcntl, os, sys, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
        "os.execv(sys.executable, [sys.executable, '-m', 'xclaw', *sys.argv[1:]])",
        *arguments,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        cwd=xclaw.directory,
        env=xclaw.environment({"LANG": "C.UTF-8", **env}),
    )
    os.close(theirs)
    terminal = Terminal(process, ours)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGKILL)
            await process.wait()
        terminal.close()
