"""Changing a file in place: one edit after the other, and none over what somebody else wrote meanwhile."""

import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from weakref import WeakValueDictionary

from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.containment import opened_here
from xclaw.workspaces.disk import read_whole

_turns: WeakValueDictionary[str, threading.Lock] = WeakValueDictionary()
_finding = threading.Lock()


@contextmanager
def in_turn(directory: str) -> Generator[None]:
    """Wait until nobody else in this process edits in `directory`."""
    with _finding:
        turn = _turns.get(directory)
        if turn is None:
            turn = _turns[directory] = threading.Lock()
    with turn:
        yield


def changed_content(name: str, directory: int, change: Callable[[bytes], bytes], limit: int) -> bytes:
    """What `change` makes of a file in an open directory. Raises `ToolFailed`, `NotRegular`, `OSError`."""
    with opened_here(name, directory) as (descriptor, status):
        content = read_whole(descriptor, limit + 1)
    if max(status.st_size, len(content)) > limit:
        raise ToolFailed(f"the file has {status.st_size} bytes; files of up to {limit} can be edited")
    changed = change(content)
    if _identity(os.stat(name, dir_fd=directory, follow_symlinks=False)) != _identity(status):
        raise ToolFailed("somebody else wrote to the file at the same moment; view it and edit it again")
    return changed


def _identity(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
