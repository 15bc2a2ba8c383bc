"""Directory trees that untrusted commands have filled (standard library only).

Everything goes by descriptors and never through a link. Nothing recurses: a tree may be deeper than any stack.
"""

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator

MAX_DEPTH = 200
ENTRY_BYTES = 4_096
"""What an entry counts at least, so that empty files are not free."""
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Unmeasurable(Exception):
    """A tree that is too deep, or whose owner has closed parts of it."""


def open_directory(path: str) -> int:
    """Raises `OSError`, also for a link."""
    return os.open(path, _DIRECTORY)


def _names(directory: int) -> list[str]:
    return os.listdir(directory)


def entries(root: int) -> Iterator[tuple[int, str, os.stat_result]]:
    """Everything below a directory: the descriptor of what it is in, its name, what it is.

    Raises:
        Unmeasurable: deeper than `MAX_DEPTH`, or not to be read.
    """
    way: list[tuple[int, list[str]]] = []
    try:
        way.append((os.dup(root), _names(root)))
        while way:
            within, names = way[-1]
            if not names:
                os.close(way.pop()[0])
                continue
            name = names.pop()
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # gone, or something else by now
                status = os.stat(name, dir_fd=within, follow_symlinks=False)
                yield within, name, status
                if stat.S_ISDIR(status.st_mode):
                    if len(way) > MAX_DEPTH:
                        raise Unmeasurable(f"directories more than {MAX_DEPTH} deep")
                    inner = os.open(name, _DIRECTORY, dir_fd=within)
                    way.append((inner, []))
                    way[-1][1].extend(_names(inner))
    except PermissionError as error:
        raise Unmeasurable("a directory that its owner cannot read") from error
    finally:
        for descriptor, _ in way:
            os.close(descriptor)


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


def give(root: int, uid: int) -> None:
    """Make a user the owner of a directory and of what is in it. A file that also has a name elsewhere keeps
    its owner: it may be somebody's. Raises `OSError`, `Unmeasurable`."""
    os.fchown(root, uid, uid)
    for within, name, status in entries(root):
        if status.st_uid == uid and status.st_gid == uid:
            continue
        if status.st_nlink > 1 and not stat.S_ISDIR(status.st_mode):
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
