"""Whose the files are that are written into a directory of somebody else's."""

import os
from contextlib import suppress
from pathlib import Path


def owner_for(directory: int | Path) -> tuple[int, int] | None:
    """User and group that what is made in `directory`, a path or open, is to belong to: a sandbox may have an
    account of its own. None: whoever runs xclaw, as only root can give away, and only what is not root's asks for it.
    """
    if os.geteuid() != 0:
        return None
    status = os.stat(directory)  # noqa: PTH116 - of a descriptor, too
    return (status.st_uid, status.st_gid) if status.st_uid != 0 else None


def give_to_owner(opened: int, directory: int) -> None:
    """Let whoever owns `directory` own what was made in it."""
    owner = owner_for(directory)
    if owner is not None:
        with suppress(OSError):  # a file system that knows no owners
            os.fchown(opened, *owner)
