"""Whether a kind of sandbox works here: found out by having one say a word that nobody else knows."""

import secrets
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

from xclaw.contracts.errors import SandboxUnavailable, ToolFailed
from xclaw.contracts.sandbox import Sandbox, SandboxCommand, SandboxSpec

_COMMAND_S = 20.0
_SHOWN = 300
_Tried = TypeVar("_Tried", bound=Sandbox)


async def tried(start: Callable[[SandboxSpec], Awaitable[_Tried]]) -> _Tried:
    """The sandbox that did, closed. Raises `SandboxUnavailable`, and what `start` raises."""
    word = secrets.token_hex(8)
    said = bytearray()
    with tempfile.TemporaryDirectory(prefix="xclaw-probe-") as directory:
        workspace, inputs = Path(directory, "workspace"), Path(directory, "input")
        workspace.mkdir()
        inputs.mkdir()
        sandbox = await start(SandboxSpec("probe", str(workspace), str(inputs)))
        try:
            command = SandboxCommand(("/bin/sh", "-c", f"echo {word}; exit 7"), _COMMAND_S)
            ended = await sandbox.exec(command, said.extend)
        except ToolFailed as error:
            raise SandboxUnavailable(f"{error}: {_text(said)}") from error
        finally:
            await sandbox.close()
    if bytes(said) != f"{word}\n".encode() or ended.code != 7:
        raise SandboxUnavailable(f"a command in it ended with {ended.code} and said {_text(said)!r}")
    return sandbox


def _text(said: bytearray) -> str:
    return bytes(said[:_SHOWN]).decode("utf-8", "replace")
