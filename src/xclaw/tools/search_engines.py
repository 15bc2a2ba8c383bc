"""Looking for a pattern in open files: with ripgrep where it is installed, else with Python. Both in a process
of their own, which gets the files as open descriptors and nothing else, and is killed when its time is over.
"""

import json
import os
import re
import selectors
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import ToolFailed
from xclaw.tools import search_child
from xclaw.tools.search_files import OpenFile

LINE_BYTES = 4_000
"""What is kept of one line."""
_OUTPUT_BYTES = 4_000_000
_ERROR_BYTES = 2_000
_POLL_S = 0.05
_READ_BYTES = 65_536
_DESCRIPTORS = Path("/proc/self/fd")
_LINE = re.compile(rb"/proc/self/fd/(\d+)\0(\d+):(\d+):([^\n]*)\n")
_CHILD = str(Path(search_child.__file__).resolve())


@dataclass(frozen=True, slots=True)
class Query:
    pattern: str
    literal: bool
    ignore_case: bool
    most: int
    """Lines of one file."""


@dataclass(frozen=True, slots=True)
class Match:
    path: str
    line: int
    column: int
    """Of the first match, in bytes, from 1."""
    text: bytes


class OutOfTime(Exception):
    """The search took longer than it may."""


class Stop:
    """Ends a search from outside: whoever waits for it has gone."""

    def __init__(self, deadline: float) -> None:
        """`deadline` on `time.monotonic()`'s clock."""
        self._deadline = deadline
        self._stopped = threading.Event()

    def now(self) -> None:
        self._stopped.set()

    @property
    def left_s(self) -> float:
        return self._deadline - time.monotonic()

    def check(self) -> None:
        """Raises `OutOfTime`."""
        if self._stopped.is_set() or self.left_s <= 0:
            raise OutOfTime


class Engine:
    """Searches batches. Goes over to Python for a pattern that ripgrep does not take."""

    def __init__(self, query: Query, ripgrep: str, stop: Stop) -> None:
        self._query = query
        self._ripgrep = ripgrep if _DESCRIPTORS.is_dir() else ""
        self._stop = stop

    def matches(self, files: list[OpenFile]) -> list[Match]:
        """In the order of the files and lines. Raises `OutOfTime`, and `ToolFailed` for a bad pattern."""
        if self._ripgrep:
            code, output, said = self._run(self._ripgrep_command(files), files)
            if code != 2 or not _is_about_pattern(said):
                return _read(output, files)
            self._ripgrep = ""
        code, output, said = self._run(self._python_command(files), files)
        if code == search_child.INVALID:
            reason = output.decode("utf-8", "replace")[:300]
            raise ToolFailed(
                f"the pattern is no regular expression: {reason}. literal=true takes it as it is"
            )
        if code != 0 and not output:
            raise ToolFailed(f"the search failed: {said.decode('utf-8', 'replace').strip()[-300:]}")
        return _read(output, files)

    def _ripgrep_command(self, files: list[OpenFile]) -> list[str]:
        query = self._query
        return [
            self._ripgrep,
            *("--no-config", "--color=never", "--no-heading", "--with-filename", "--null", "--line-number"),
            *("--column", "--no-mmap", "--text", "--crlf", "--threads=1", "--no-messages"),
            f"--max-count={query.most}",
            f"--max-columns={LINE_BYTES}",
            "--max-columns-preview",
            "--ignore-case" if query.ignore_case else "--case-sensitive",
            *(("--fixed-strings",) if query.literal else ()),
            f"--regexp={query.pattern}",
            "--",
            *(f"{_DESCRIPTORS}/{file.descriptor}" for file in files),
        ]

    def _python_command(self, files: list[OpenFile]) -> list[str]:
        asked = {
            "pattern": self._query.pattern,
            "literal": self._query.literal,
            "ignore_case": self._query.ignore_case,
            "descriptors": [file.descriptor for file in files],
            "most": self._query.most,
            "line_bytes": LINE_BYTES,
            "cpu_s": max(self._stop.left_s, 1),
        }
        return [sys.executable, "-I", "-S", _CHILD, json.dumps(asked)]

    def _run(self, command: list[str], files: list[OpenFile]) -> tuple[int, bytes, bytes]:
        """Exit code, output, and what it said. Raises `OutOfTime`."""
        self._stop.check()
        try:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=[file.descriptor for file in files],
                cwd="/",
                env={"LC_ALL": "C.UTF-8"},
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise ToolFailed(f"the search could not be started: {error}") from error
        with process:
            try:
                return self._result(process)
            finally:
                process.kill()

    def _result(self, process: subprocess.Popen[bytes]) -> tuple[int, bytes, bytes]:
        assert process.stdout is not None
        assert process.stderr is not None
        output, said = _Kept(bytearray(), _OUTPUT_BYTES), _Kept(bytearray(), _ERROR_BYTES)
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, output)
            selector.register(process.stderr, selectors.EVENT_READ, said)
            while selector.get_map():
                self._stop.check()
                for key, _ in selector.select(_POLL_S):
                    if not cast(_Kept, key.data).add(os.read(key.fd, _READ_BYTES)):
                        selector.unregister(key.fileobj)
                if output.is_full:
                    return 0, bytes(output.text), b""
        return process.wait(), bytes(output.text), bytes(said.text)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The beginning of what a stream says."""

    text: bytearray
    limit: int

    def add(self, part: bytes) -> bool:
        """False at the end of the stream."""
        self.text.extend(part[: self.limit - len(self.text)])
        return bool(part)

    @property
    def is_full(self) -> bool:
        return len(self.text) >= self.limit


def _is_about_pattern(said: bytes) -> bool:
    return any(word in said for word in (b"regex", b"look-around", b"backreference", b"not allowed"))


def _read(output: bytes, files: list[OpenFile]) -> list[Match]:
    paths = {file.descriptor: file.path for file in files}
    found: list[Match] = []
    for descriptor, line, column, text in _LINE.findall(output):
        if int(descriptor) in paths:
            found.append(Match(paths[int(descriptor)], int(line), int(column), text))
    return found
