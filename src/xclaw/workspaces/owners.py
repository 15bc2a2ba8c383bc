"""Whose the files are that are written into a directory of somebody else's."""

import os
from contextlib import suppress


def give_to_owner(opened: int, directory: int) -> None:
    """Let whoever owns `directory` own what was made in it: a sandbox may have an account of its own. Only
    root can, and only a directory that is not root's asks for it."""
    if os.geteuid() != 0:
        return
    owner = os.fstat(directory)
    if owner.st_uid != 0:
        with suppress(OSError):  # a file system that knows no owners
            os.fchown(opened, owner.st_uid, owner.st_gid)
