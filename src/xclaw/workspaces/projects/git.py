"""Calling git so that nothing but git runs.

Every call works on a repository of xclaw's own, whose configuration nobody else writes; the user's `.git` is never
a call's repository. The environment is made anew each time, transports are off, and what a call may take and say
is bounded.
"""

import contextlib
import os
import re
import selectors
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

from xclaw.contracts.errors import UsageError

OLDEST = (2, 38)
"""The first with `git merge-tree --write-tree`."""
MAX_OUTPUT = 512_000_000
_PATH = "/usr/local/bin:/usr/bin:/bin:/opt/homebrew/bin:/opt/local/bin"
_SAFE = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectNTFS=true",
    "core.protectHFS=true",
    "protocol.allow=never",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "submodule.recurse=false",
    "core.quotePath=true",
)
_ENVIRONMENT: Mapping[str, str] = {
    "PATH": _PATH,
    "LC_ALL": "C",
    "HOME": "/nonexistent",
    "XDG_CONFIG_HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "/bin/false",
    "GIT_EDITOR": "/bin/false",
    "GIT_PAGER": "cat",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_PROTOCOL_FROM_USER": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
}
_FLUSHED = ("-c", "core.fsync=committed", "-c", "core.fsyncMethod=batch")
_UNFLUSHED = ("-c", "core.fsync=none")
_READ = 1 << 16
_SHOWN = 500


class GitFailed(UsageError):
    """git refused or could not. The text has what it said."""


class OutputTooLong(GitFailed):
    """git said more than was allowed."""


@dataclass(frozen=True, slots=True)
class GitSettings:
    program: str = "git"
    timeout_s: float = 300.0
    durable: bool = True


@dataclass(frozen=True, slots=True)
class Git:
    """git on one repository. Calls block; `lock` is a descriptor that stays open as long as a call does, so that
    what it locks is not free before a call that outlived its xclaw has ended."""

    settings: GitSettings
    repository: str
    lock: int | None = None
    also: tuple[tuple[str, str], ...] = ()
    """Of the environment of every call."""

    def __call__(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        environment: Mapping[str, str] | None = None,
        accepted: Sequence[int] = (0,),
        limit: int = MAX_OUTPUT,
    ) -> bytes:
        """What it wrote. Raises `GitFailed`."""
        code, output, said = self.ended(*arguments, stdin=stdin, environment=environment, limit=limit)
        if code not in accepted:
            raise GitFailed(f"git {arguments[0]} failed ({code}): {_readable(said)}")
        return output

    def told(self, *arguments: str, environment: Mapping[str, str]) -> tuple[bytes, bytes]:
        """What it wrote, and its warnings. Raises `GitFailed`."""
        code, output, said = self.ended(*arguments, environment=environment)
        if code != 0:
            raise GitFailed(f"git {arguments[0]} failed ({code}): {_readable(said)}")
        return output, said

    def ended(
        self,
        *arguments: str,
        stdin: bytes | IO[bytes] = b"",
        environment: Mapping[str, str] | None = None,
        limit: int = MAX_OUTPUT,
    ) -> tuple[int, bytes, bytes]:
        """Exit code, output and errors. Raises `GitFailed` where it cannot be run, or takes or says too much."""
        with tempfile.TemporaryFile() as errors, _as_file(stdin) as source:
            process = self._start(arguments, source, errors, environment)
            try:
                output = _bounded(process, limit, time.monotonic() + self.settings.timeout_s, arguments[0])
                code = process.wait()
            finally:
                _end(process)
            errors.seek(0)
            return code, output, errors.read(_READ)

    def _start(
        self,
        arguments: Sequence[str],
        source: IO[bytes] | int,
        errors: IO[bytes] | int,
        environment: Mapping[str, str] | None,
    ) -> "subprocess.Popen[bytes]":
        flushing = _FLUSHED if self.settings.durable else _UNFLUSHED
        fixed = [part for setting in _SAFE for part in ("-c", setting)]
        try:
            return subprocess.Popen(
                [self.settings.program, "--no-pager", *fixed, *flushing, *arguments],
                stdin=source,
                stdout=subprocess.PIPE,
                stderr=errors,
                cwd="/",
                env={**_ENVIRONMENT, "GIT_DIR": self.repository, **dict(self.also), **(environment or {})},
                start_new_session=True,
                pass_fds=() if self.lock is None else (self.lock,),
            )
        except FileNotFoundError:
            raise GitFailed(
                f"{self.settings.program} is not there; work on a project needs git 2.38 or later: install it "
                "(apt-get install git)"
            ) from None
        except OSError as failure:
            raise GitFailed(f"git cannot be started: {failure.strerror or failure}") from failure

    @contextmanager
    def blobs(self) -> Generator["Blobs"]:
        """Contents of files by id, one after the other, from a single process."""
        process = self._start(("cat-file", "--batch"), subprocess.PIPE, subprocess.DEVNULL, None)
        too_long = threading.Timer(self.settings.timeout_s, lambda: _end(process))
        too_long.daemon = True
        too_long.start()
        try:
            yield Blobs(process)
        finally:
            too_long.cancel()
            _end(process)

    def check_version(self) -> str:
        """Which one it is. Raises `GitFailed` for none, and for one that is too old."""
        said = self("version").decode("utf-8", "replace")
        found = re.search(r"(\d+)\.(\d+)", said)
        if found is None or (int(found[1]), int(found[2])) < OLDEST:
            raise GitFailed(f"work on a project needs git 2.38 or later; here is {said.strip()[:80]!r}")
        return said.strip()[:80].removeprefix("git version ")


class Blobs:
    """An open `cat-file --batch`."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._ask = process.stdin
        self._answer = process.stdout

    def content(self, object_id: str) -> bytes:
        """Raises `GitFailed` for an object that there is not."""
        try:
            self._ask.write(f"{object_id}\n".encode())
            self._ask.flush()
            header = self._answer.readline().split()
            if len(header) != 3:
                raise GitFailed(f"the object {object_id} is missing from xclaw's repository of the project")
            content = self._answer.read(int(header[2]))
            self._answer.read(1)
        except OSError as failure:
            raise GitFailed(f"git cat-file ended early: {failure}") from failure
        if len(content) != int(header[2]):
            raise GitFailed("git cat-file ended early")
        return content


@contextmanager
def _as_file(content: bytes | IO[bytes]) -> Generator[IO[bytes] | int]:
    """Standard input that cannot block: a file, read from its beginning."""
    if isinstance(content, bytes):
        if not content:
            yield subprocess.DEVNULL
            return
        with tempfile.TemporaryFile() as file:
            file.write(content)
            file.seek(0)
            yield file
        return
    content.flush()
    content.seek(0)
    yield content


def _bounded(process: "subprocess.Popen[bytes]", limit: int, until: float, command: str) -> bytes:
    assert process.stdout is not None
    pieces: list[bytes] = []
    size = 0
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            left = until - time.monotonic()
            if left <= 0 or not selector.select(left):
                raise GitFailed(f"git {command} took too long and was stopped; see project.git_timeout_s")
            piece = os.read(process.stdout.fileno(), _READ)
            if not piece:
                return b"".join(pieces)
            size += len(piece)
            if size > limit:
                raise OutputTooLong(f"git {command} said more than {limit} bytes and was stopped")
            pieces.append(piece)


def _end(process: "subprocess.Popen[bytes]") -> None:
    """The process with everything that it started."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _readable(said: bytes) -> str:
    text = " ".join(said.decode("utf-8", "replace").split())
    return "".join(character if character.isprintable() else "?" for character in text)[-_SHOWN:]
