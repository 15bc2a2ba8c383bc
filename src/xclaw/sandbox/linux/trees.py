"""Directory trees that untrusted commands have filled (standard library only).

Everything goes by descriptors and never through a link. Nothing recurses: a tree may be deeper than any stack.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

ENTRY_BYTES = 4_096
"""What an entry counts at least, so that empty files are not free."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NOT_THERE = (FileNotFoundError, NotADirectoryError)
"""Gone since it was listed, or something else by now."""


class Unmeasurable(Exception):
    """A tree that changed under the eyes of whoever looked, or whose owner has closed parts of it."""


def open_directory(path: str) -> int:
    """Raises `OSError`, also for a link."""
    return os.open(path, _DIRECTORY)


def entries(root: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Everything below a directory: the descriptor of what it is in, its name, what it is. Whatever the depth,
    one descriptor is open: the way up is `..`, which must lead where the way down came from.

    Raises:
        Unmeasurable: a directory was moved meanwhile, or cannot be read.
    """
    within = os.dup(root)
    way = [(_identity(within), _names(within))]
    try:
        while way:
            names = way[-1][1]
            if not names:
                way.pop()
                within = _risen(within, way[-1][0]) if way else within
                continue
            name = names.pop()
            with contextlib.suppress(*_NOT_THERE):
                status = os.stat(name, dir_fd=within, follow_symlinks=False)
                yield within, name, status
                if stat.S_ISDIR(status.st_mode):
                    inner = _entered(within, name)
                    os.close(within)
                    within = inner
                    way.append((_identity(within), _names(within)))
    except PermissionError as error:
        raise Unmeasurable("a directory that its owner cannot read") from error
    finally:
        os.close(within)


def _identity(directory: int) -> tuple[int, int]:
    status = os.fstat(directory)
    return status.st_dev, status.st_ino


def _names(directory: int) -> list[str]:
    return os.listdir(directory)


def _risen(within: int, expected: tuple[int, int]) -> int:
    above = os.open("..", _DIRECTORY, dir_fd=within)
    if _identity(above) != expected:
        os.close(above)
        raise Unmeasurable("a directory that was moved meanwhile")
    os.close(within)
    return above


def _entered(within: int, name: str) -> int:
    """Whoever owns a directory that it has closed to itself may open it again."""
    try:
        return os.open(name, _DIRECTORY, dir_fd=within)
    except PermissionError:
        found = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=within)
        try:
            Path(f"/proc/self/fd/{found}").chmod(0o700)
        finally:
            os.close(found)
        return os.open(name, _DIRECTORY, dir_fd=within)


def allocated_bytes(root: int) -> int:
    """What the tree below a directory takes up. Raises `Unmeasurable`."""
    total = 0
    linked: set[tuple[int, int]] = set()
    for _, _, status in entries(root):
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
            identity = (status.st_dev, status.st_ino)
            if identity in linked:
                continue
            linked.add(identity)
        total += max(status.st_blocks * 512, ENTRY_BYTES)
    return total


def give(root: int, uid: int, sandboxes: range = range(0)) -> None:
    """Make a user the owner of a directory and of what is in it. A file that has a second name keeps its owner,
    since it may be somebody's elsewhere; unless it belongs to an id of `sandboxes`, which make names within
    their own directory only. Raises `OSError`, `Unmeasurable`."""
    os.fchown(root, uid, uid)
    for within, name, status in entries(root):
        if status.st_uid == uid and status.st_gid == uid:
            continue
        is_linked = status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode)
        if is_linked and status.st_uid not in sandboxes:
            continue
        with contextlib.suppress(FileNotFoundError):
            os.chown(name, uid, uid, dir_fd=within, follow_symlinks=False)


def empty(root: int) -> None:
    """Remove everything in a directory, however deep. Nobody else may be at work in it. Raises `OSError`."""
    while True:
        deeper = 0
        for name in _names(root):
            deeper += _remove(root, name)
        if not deeper:
            return


def _remove(root: int, name: str) -> int:
    """Remove one entry; the directories in it are moved up into `root`, and counted."""
    status = os.stat(name, dir_fd=root, follow_symlinks=False)
    if not stat.S_ISDIR(status.st_mode):
        os.unlink(name, dir_fd=root)
        return 0
    with contextlib.suppress(PermissionError):
        os.chmod(name, 0o700, dir_fd=root)
    inner = os.open(name, _DIRECTORY, dir_fd=root)
    moved = 0
    try:
        for below in _names(inner):
            status = os.stat(below, dir_fd=inner, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                with contextlib.suppress(PermissionError):  # moving a directory writes its "..", too
                    os.chmod(below, 0o700, dir_fd=inner)
                os.rename(below, f".{secrets.token_hex(8)}", src_dir_fd=inner, dst_dir_fd=root)
                moved += 1
            else:
                os.unlink(below, dir_fd=inner)
    finally:
        os.close(inner)
    os.rmdir(name, dir_fd=root)
    return moved
