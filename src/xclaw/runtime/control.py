"""How another process of the same user reaches the runs of this one: a socket that only the owner opens.

One JSON object per line in, one out: `{"cancel": run_id, "reason": text}` → `{"ends": [...]}`,
`{"answered": approval_id}` → `{"woken": bool}`.
"""

import asyncio
import json
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from xclaw.contracts.errors import UsageError
from xclaw.runtime.tree import NodeEnd

LINE_BYTES = 65_536
SOCKET_PATH_BYTES = 100
"""What every system takes, with room to spare."""
ANSWER_S = 30.0
"""How long a caller waits: cancelling waits for every run of a tree to confirm."""

Cancel = Callable[[str, str], Awaitable[list[NodeEnd]]]
Wake = Callable[[str], bool]
"""Told that an approval was answered."""


class ControlSocket:
    """Listens while the process drives runs. Its directory is the user's alone."""

    def __init__(self, cancel: Cancel, wake: Wake) -> None:
        self._cancel = cancel
        self._wake = wake
        self._server: asyncio.Server | None = None
        self._directory = ""

    @property
    def path(self) -> str:
        """Empty when it does not listen."""
        return str(Path(self._directory) / "control") if self._directory else ""

    async def open(self) -> None:
        # Socket paths are short, homes may not be: hence the temporary directory, or where even that
        # is too long, the one that every Unix has.
        self._directory = tempfile.mkdtemp(prefix="xclaw-")
        if len(os.fsencode(self.path)) > SOCKET_PATH_BYTES:
            await self.close()
            self._directory = tempfile.mkdtemp(prefix="xclaw-", dir="/tmp")
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=LINE_BYTES)
        Path(self.path).chmod(0o600)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        shutil.rmtree(self._directory, ignore_errors=True)
        self._directory = ""

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            writer.write(json.dumps(await self._answer(line)).encode() + b"\n")
            await writer.drain()
        except (ConnectionError, ValueError):
            pass
        finally:
            writer.close()

    async def _answer(self, line: bytes) -> dict[str, object]:
        try:
            order = json.loads(line)
            if "answered" in order:
                return {"woken": self._wake(str(order["answered"]))}
            run_id, reason = str(order["cancel"]), str(order.get("reason", ""))[:500]
        except (ValueError, KeyError, TypeError, AttributeError):
            return {"error": 'expected {"cancel": run_id}'}
        return {"ends": [asdict(end) for end in await self._cancel(run_id, reason)]}


def sweep_socket(path: str) -> None:
    """Remove what a process that was killed left of its socket; nothing that does not look like one."""
    directory = Path(path).parent
    if path and Path(path).name == "control" and directory.name.startswith("xclaw-"):
        with suppress(OSError):
            Path(path).unlink()
            directory.rmdir()


async def cancel_elsewhere(path: str, run_id: str, reason: str) -> list[NodeEnd]:
    """Ask the process behind a control socket to end a run. Raises `UsageError` if it cannot be asked."""
    try:
        answer = await _ask(path, {"cancel": run_id, "reason": reason})
    except (OSError, ValueError, TimeoutError) as failure:
        raise UsageError(f"the process that drives run {run_id} does not answer: {failure}") from failure
    return [NodeEnd(**end) for end in answer.get("ends", [])]


async def wake_elsewhere(path: str, approval_id: str) -> None:
    """Tell the process behind a control socket that an approval was answered. Raises `OSError`,
    `ValueError` or `TimeoutError` if it cannot be told; it looks by itself after a while."""
    await _ask(path, {"answered": approval_id})


async def _ask(path: str, order: dict[str, str]) -> Any:
    async with asyncio.timeout(ANSWER_S):
        reader, writer = await asyncio.open_unix_connection(path, limit=LINE_BYTES * 16)
        writer.write(json.dumps(order).encode() + b"\n")
        answer = json.loads(await reader.readline())
        writer.close()
    return answer
