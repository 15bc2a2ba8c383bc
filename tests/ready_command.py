"""The command as a process that is forked from one that has everything imported: the import is two thirds of
what a short command costs.

Each is a process of its own in everything else, with its own arguments, environment, directory and streams. For each
set of what the interpreter reads when it starts (`PYTHON...`, the locale) there is one to fork from. With
`XCLAW_TEST_FRESH=1` every command is started anew, and so is one whose imports are looked at.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from io import TextIOWrapper
from pathlib import Path
from threading import Lock, Timer
from typing import TextIO

MAX_ORDER_BYTES = 60_000
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ")


class ReadyCommand:
    """Owns the process that forks."""

    def __init__(self, env: Mapping[str, str]) -> None:
        """`env`: what the interpreter starts with."""
        self.idle = Lock()
        """Held while a command runs: there is one at a time."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket = ours
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=env,
                pass_fds=[theirs.fileno()],
            )

    def run(self, order: bytes, stdin: bytes, timeout_s: float) -> subprocess.CompletedProcess[bytes]:
        """Raises `TimeoutExpired`, once the process has been killed."""
        with ExitStack() as stack:
            ends = [os.pipe() for _ in range(3)]
            theirs = [ends[0][0], ends[1][1], ends[2][1]]
            socket.send_fds(self._socket, [order], theirs)
            for descriptor in theirs:
                os.close(descriptor)
            pid = int(self._socket.recv(100))
            timer = Timer(timeout_s, os.kill, (pid, signal.SIGKILL))
            timer.start()
            stack.callback(timer.cancel)
            pool = stack.enter_context(ThreadPoolExecutor(2))
            pool.submit(_write, ends[0][1], stdin)
            err = pool.submit(_read, ends[2][0])
            out = _read(ends[1][0])
            code = int(self._socket.recv(100))
            if timer.finished.is_set():
                raise subprocess.TimeoutExpired(order, timeout_s, out, err.result())
            return subprocess.CompletedProcess(order, code, out, err.result())

    def end(self) -> None:
        self._socket.close()
        self._process.wait(10)


def _read(descriptor: int) -> bytes:
    with open(descriptor, "rb") as pipe:
        return pipe.read()


def _write(descriptor: int, data: bytes) -> None:
    with suppress(BrokenPipeError), open(descriptor, "wb", buffering=0) as pipe:
        pipe.write(data)


@cache
def _ready(env: tuple[tuple[str, str], ...]) -> ReadyCommand:
    ready = ReadyCommand(dict(env))
    atexit.register(ready.end)
    return ready


def run_ready(
    arguments: Sequence[str],
    *,
    stdin: bytes,
    directory: Path,
    env: Mapping[str, str],
    timeout_s: float,
) -> subprocess.CompletedProcess[bytes]:
    """`python -m xclaw` with these to its end."""
    at_start = {name: value for name, value in env.items() if name.startswith(READ_AT_START)}
    fresh = "XCLAW_TEST_FRESH" in os.environ or "PYTHONPROFILEIMPORTTIME" in env
    order = json.dumps([list(arguments), str(directory), dict(env)]).encode()
    if not fresh and len(order) <= MAX_ORDER_BYTES:
        ready = _ready(tuple(sorted({**at_start, "PATH": env.get("PATH", "")}.items())))
        if ready.idle.acquire(blocking=False):
            try:
                return ready.run(order, stdin, timeout_s)
            finally:
                ready.idle.release()
    return subprocess.run(
        [sys.executable, "-m", "xclaw", *arguments],
        input=stdin,
        capture_output=True,
        cwd=directory,
        env=env,
        timeout=timeout_s,
        check=False,
    )


def _import_all() -> None:
    importlib.import_module("xclaw.app")
    package = importlib.import_module("xclaw.cli")
    for module in pkgutil.iter_modules(package.__path__, "xclaw.cli."):
        importlib.import_module(module.name)
    gc.freeze()


def _become(order: bytes, descriptors: Sequence[int]) -> None:
    """Everything by which this process differs from one that was started."""
    arguments, directory, env = json.loads(order)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
        os.close(descriptor)
    os.chdir(directory)
    os.environ.clear()
    os.environ.update(env)
    sys.argv, sys.path[0] = ["xclaw", *arguments], directory
    sys.stdin = sys.__stdin__ = _again(sys.stdin, "rb")
    sys.stdout = sys.__stdout__ = _again(sys.stdout, "wb")
    sys.stderr = sys.__stderr__ = _again(sys.stderr, "wb")


def _again(stream: TextIO, mode: str) -> TextIO:
    """The stream that the interpreter would have made; the old one has read and written nothing."""
    # The one for errors writes each line at once.
    return TextIOWrapper(
        open(stream.fileno(), mode, closefd=False),
        encoding=stream.encoding,
        errors=stream.errors,
        line_buffering=stream is sys.stderr,
    )


def main(control: socket.socket) -> None:
    """Forks for each order; a child returns."""
    _import_all()
    while True:
        order, descriptors, _, _ = socket.recv_fds(control, MAX_ORDER_BYTES, 3)
        if not order:
            os._exit(0)
        pid = os.fork()
        if pid == 0:
            control.close()
            _become(order, descriptors)
            return
        for descriptor in descriptors:
            os.close(descriptor)
        control.send(str(pid).encode())
        _, status = os.waitpid(pid, 0)
        control.send(str(os.waitstatus_to_exitcode(status)).encode())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
    runpy.run_module("xclaw", run_name="__main__", alter_sys=True)
