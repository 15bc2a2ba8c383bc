"""What a user's own agent script sees of xclaw: `import xclaw.script as xclaw`. Standard library only.

    import xclaw.script as xclaw

    names = xclaw.ask("Name three rivers.", schema={"type": "array", "items": {"type": "string"}})
    xclaw.deliver("rivers.md", "\\n".join(names))
    xclaw.finish({"rivers": names})

The script runs as its own Python process inside a forked sub-agent: its model calls, artifacts and
delegations are that run's, within its budget and time, and in its trace. Calls block, from any thread, one
at a time; in a coroutine use `await asyncio.to_thread(xclaw.ask, ...)`. After a crash the script starts
again from its beginning: calls that were answered before are answered the same, as long as it asks the
same in the same order.
"""

import base64
import json
import os
import socket
import threading
from dataclasses import dataclass
from typing import Any, NoReturn

DESCRIPTOR = "XCLAW_SCRIPT_FD"
"""The environment variable that holds the descriptor of the line to the worker."""
MAX_LINE = 8 * 1024 * 1024


class ScriptError(Exception):
    """What was asked for cannot be had; the text says why."""


class LimitReached(ScriptError):
    """A bound of the run or its tree was met: tokens, money, calls, depth, width."""


class ModelFailed(ScriptError):
    """No model of the chain answered."""


class Refused(ScriptError):
    """The sub-agent may not start, or the artifact may not be delivered."""


_KINDS = {"limit": LimitReached, "model": ModelFailed, "refused": Refused}


@dataclass(frozen=True, slots=True)
class Delegated:
    """How a sub-agent ended."""

    outcome: str
    """"success", or why not."""
    text: str
    summary_data: Any
    artifacts: dict[str, str]
    """Name to path."""
    reason: str

    @property
    def succeeded(self) -> bool:
        return self.outcome in ("success", "completed_unverified")


class _Line:
    """Connects at the first call, so that importing does nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._buffer = bytearray()

    def call(self, do: str, **fields: Any) -> Any:
        text = json.dumps({"do": do, **fields}).encode()
        if len(text) > MAX_LINE:
            raise ScriptError(f"that is longer than {MAX_LINE} bytes")
        with self._lock:
            connection = self._connected()
            try:
                connection.sendall(text + b"\n")
                answer: dict[str, Any] = json.loads(self._receive(connection))
            except OSError as failure:
                raise ScriptError(f"xclaw is gone: {failure}") from failure
        if "error" in answer:
            raise _KINDS.get(answer.get("kind", ""), ScriptError)(answer["error"])
        return answer.get("value")

    def _connected(self) -> socket.socket:
        if self._socket is None:
            descriptor = os.environ.get(DESCRIPTOR, "")
            if not descriptor.isdigit():
                raise ScriptError("this script was not started by xclaw: run it with `xclaw fork SCRIPT`")
            os.set_inheritable(int(descriptor), False)
            self._socket = socket.socket(fileno=int(descriptor))
        return self._socket

    def _receive(self, connection: socket.socket) -> bytes:
        while b"\n" not in self._buffer:
            chunk = connection.recv(65_536)
            if not chunk:
                raise ScriptError("xclaw is gone")
            self._buffer += chunk
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line


_line = _Line()


def task() -> str:
    """What the script was asked: the user's message or the parent's task."""
    return _line.call("task")


def ask(prompt: str, schema: dict[str, Any] | None = None, system: str | None = None) -> Any:
    """One model call. Answers its text; with a JSON `schema`, the value that fits it.

    `system` replaces the agent's instructions for this call. Raises `LimitReached`, `ModelFailed`, and
    `ScriptError` when no answer fits the schema.
    """
    return _line.call("ask", prompt=prompt, schema=schema, system=system)


def say(text: str) -> None:
    """Show a line to whoever watches the run."""
    _line.call("say", text=text)


def deliver(name: str, content: str | bytes) -> str:
    """Hand in a finished file; answers its path. Raises `Refused`."""
    raw = content.encode() if isinstance(content, str) else content
    return _line.call("deliver", name=name, content=base64.b64encode(raw).decode())


def delegate(agent: str, text: str) -> Delegated:
    """Hand a task to another agent and wait for its end. Raises `Refused`."""
    return Delegated(**_line.call("delegate", agent=agent, text=text))


def spend() -> dict[str, Any]:
    """What the run has used: {"tokens", "usd" (None when a price is unknown), "calls", "left"}."""
    return _line.call("spend")


def mail() -> list[str]:
    """What was said to the run since the last time."""
    return _line.call("mail")


def workspace() -> str:
    """A directory of the run's own."""
    return _line.call("workspace")


def finish(summary_data: Any = None, text: str = "") -> None:
    """Say how it went; the last time counts. Without it, exit code 0 is success with the end of the
    output as its text, any other an error."""
    _line.call("finish", summary_data=summary_data, text=text)


def fail(reason: str) -> NoReturn:
    """End the script, and the run as an error with this reason."""
    _line.call("fail", reason=reason)
    raise SystemExit(1)
