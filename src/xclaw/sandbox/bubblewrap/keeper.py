"""The process that keeps one sandbox (standard library only): one order on its socket, then commands.

It holds what the sandbox is made of, starts bubblewrap for each command, bounds and ends it. When its socket
closes or its parent dies it kills everything and ends; when it is killed itself, bubblewrap dies with it.
"""

import contextlib
import os
import select
import signal
import socket
import sys
import time
from typing import cast

from xclaw.sandbox.bubblewrap import frames
from xclaw.sandbox.bubblewrap.commands import RunningCommand
from xclaw.sandbox.bubblewrap.order import Order, Place, prepare
from xclaw.sandbox.linux import ground
from xclaw.sandbox.linux.held import descendants
from xclaw.sandbox.linux.trees import empty
from xclaw.sandbox.output import BoundedOutput

_IDLE_S = 1.0
_WAITING_BYTES = 1 << 20
"""Output that waits for xclaw; then the command waits, too."""
_KILLING_S = 5.0
_SOCKET_BYTES = 1 << 18


class Keeper:
    def __init__(self, line: socket.socket, parent: int, place: Place) -> None:
        self._line = line
        self._parent = parent
        self._place = place
        self._frames = frames.Unframed()
        self._outgoing = bytearray()
        self._command: RunningCommand | None = None
        self._ended = ""
        self._until = 0.0
        self._output = BoundedOutput(self._say, 0)
        self._reads_report = False
        self._reads_output = False
        self._woken = ground.woken_by_children()
        line.setblocking(False)

    def run(self) -> None:
        """Until nobody is there to work for."""
        self._send(frames.fields_frame(frames.READY, self._place.description))
        try:
            while os.getppid() == self._parent and self._step():
                pass
        finally:
            self._end_all()

    def _step(self) -> bool:
        poll = select.poll()
        command = self._command
        poll.register(self._line, select.POLLIN | (select.POLLOUT if self._outgoing else 0))
        poll.register(self._woken, select.POLLIN)
        if command is not None:
            if self._reads_output and len(self._outgoing) < _WAITING_BYTES:
                poll.register(command.output, select.POLLIN)
            if self._reads_report:
                poll.register(command.report, select.POLLIN)
            if command.stdin is not None:
                poll.register(command.stdin, select.POLLOUT)
        ready = dict(poll.poll(self._wait_s() * 1000))
        if self._woken in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 512)
        if command is not None:
            self._attend(command, ready)
        if ready.get(self._line.fileno(), 0) & select.POLLOUT:
            self._flush()
        if ready.get(self._line.fileno(), 0) & ~select.POLLOUT:
            return self._receive()
        return True

    def _wait_s(self) -> float:
        if self._command is None:
            return _IDLE_S
        return min(_IDLE_S, max(self._until - time.monotonic(), 0.0), self._place.watch.due_s())

    def _attend(self, command: RunningCommand, ready: dict[int, int]) -> None:
        if command.output in ready:
            piece = command.read()
            self._reads_output = piece != b""
            self._output.add(piece or b"")
        if command.report in ready:
            self._reads_report = command.listen()
        if command.stdin in ready:
            command.feed()
        self._reap()
        if command.status is None:
            self._look(command)
        if command.status is not None:
            self._finish(command)

    def _look(self, command: RunningCommand) -> None:
        """Whether the command is within its bounds; else it is killed."""
        if self._ended:
            return
        if time.monotonic() >= self._until:
            self._kill(command, "timeout")
        elif self._place.group.memory_kills() > self._kills_before:
            self._kill(command, "memory")
        elif self._place.watch.due_s() == 0.0 and (
            reason := self._place.watch.over(descendants(command.pid))
        ):
            self._kill(command, reason)

    def _kill(self, command: RunningCommand, reason: str) -> None:
        self._ended = self._ended or reason
        command.kill()

    def _finish(self, command: RunningCommand) -> None:
        """All processes of a command are gone with its first; what it had said last is still in the pipes."""
        self._end_orphans()
        command.drain(self._output.add)
        if not self._ended and self._place.group.memory_kills() > self._kills_before:
            self._ended = "memory"
        settled = self._place.watch.settle()
        self._ended = self._ended or settled
        assert command.status is not None
        code = os.waitstatus_to_exitcode(command.status)
        self._send(
            frames.fields_frame(
                frames.ENDED,
                {
                    "ended": self._ended or "exited",
                    "code": code if code >= 0 else 128 - code,
                    "began": command.reported.began,
                    "hindrance": command.reported.hindrance,
                    "left_behind": command.reported.left_behind,
                    "dropped_bytes": self._output.dropped,
                    "duration_s": time.monotonic() - command.started_at,
                },
            )
        )
        command.close()
        self._command = None

    def _receive(self) -> bool:
        """What xclaw wants; false when it has hung up."""
        try:
            data = self._line.recv(_SOCKET_BYTES)
        except BlockingIOError:
            return True
        except ConnectionError:
            return False
        for kind, body in self._frames.feed(data):
            if kind == frames.RUN:
                self._start(body)
            elif kind == frames.CANCEL and self._command is not None:
                self._kill(self._command, "cancelled")
        return bool(data)

    def _start(self, body: bytes) -> None:
        fields, stdin = frames.fields_of(body)
        self._ended = ""
        self._output = BoundedOutput(self._say, cast("int", fields["output_bytes"]))
        self._until = time.monotonic() + cast("float", fields["timeout_s"])
        self._reads_report = self._reads_output = True
        self._kills_before = self._place.group.memory_kills()
        self._place.watch.begin()
        try:
            self._command = self._place.start(fields, stdin)
        except (OSError, ValueError) as error:
            text = error.strerror if isinstance(error, OSError) else str(error)
            ended = {"ended": "exited", "code": 127, "began": False, "hindrance": text or "unknown"}
            self._send(frames.fields_frame(frames.ENDED, ended))

    def _say(self, piece: bytes) -> None:
        self._send(frames.frame(frames.OUTPUT, piece))

    def _send(self, data: bytes) -> None:
        self._outgoing += data
        self._flush()

    def _flush(self) -> None:
        with contextlib.suppress(BlockingIOError, ConnectionError):  # that it is gone is read elsewhere
            while self._outgoing:
                del self._outgoing[: self._line.send(memoryview(self._outgoing)[:_SOCKET_BYTES].tobytes())]

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                if self._command is not None and pid == self._command.pid:
                    self._command.status = status

    def _end_orphans(self) -> None:
        """Nothing is below this process when no command runs; whatever is, is killed."""
        until = time.monotonic() + _KILLING_S
        while time.monotonic() < until:
            self._reap()
            below = list(descendants(os.getpid()))
            if not below:
                return
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL)
            select.select([self._woken], [], [], 0.005)
            with contextlib.suppress(BlockingIOError):
                os.read(self._woken, 512)

    def _end_all(self) -> None:
        if self._command is not None:
            self._command.kill()
        self._end_orphans()
        with contextlib.suppress(OSError):
            empty(self._place.temporary)


def main() -> None:
    """Standard input is the socket to xclaw; the arguments are the parent's process id and the descriptor that
    a listening socket is handed over by, or -1."""
    parent, handing = int(sys.argv[1]), int(sys.argv[2])
    line = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # xclaw says when it is over
    ground.adopt_orphans()
    waiting = frames.Unframed()
    for kind, body in _first(line, waiting):
        if kind != frames.SETUP:
            return
        try:
            place = prepare(Order(frames.fields_of(body)[0]), handing)
        except (OSError, ValueError, KeyError) as error:
            with contextlib.suppress(OSError):
                line.sendall(frames.fields_frame(frames.REFUSED, {"reason": str(error)}))
            return
        Keeper(line, parent, place).run()


def _first(line: socket.socket, waiting: frames.Unframed) -> list[tuple[int, bytes]]:
    while data := line.recv(_SOCKET_BYTES):
        if found := list(waiting.feed(data)):
            return found[:1]
    return []
