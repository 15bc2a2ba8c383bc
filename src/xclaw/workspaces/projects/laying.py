"""Putting the files of a commit into a directory: as they are stored, with no conversion."""

import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path

from xclaw.workspaces.projects.denied import is_git_internal
from xclaw.workspaces.projects.git import Blobs

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def lay_out(
    files: Mapping[str, tuple[str, str]],
    blobs: Blobs,
    directory: Path,
    *,
    read_only: bool,
    owner: tuple[int, int] | None,
) -> None:
    """`directory` is new and empty. `owner`: user and group of all of it, where xclaw is root."""
    made: set[Path] = {directory}
    for path, (mode, object_id) in files.items():
        if mode not in ("100644", "100755", "120000") or any(map(is_git_internal, path.split("/"))):
            continue
        place = directory / path
        _make_above(place.parent, made)
        content = blobs.content(object_id)
        if mode == "120000":
            place.symlink_to(os.fsdecode(content))
        else:
            _write(place, content, _bits(mode, read_only=read_only))
        if owner is not None:
            os.chown(place, *owner, follow_symlinks=False)
    for folder in made:
        if owner is not None:
            os.chown(folder, *owner, follow_symlinks=False)
        folder.chmod(0o555 if read_only else 0o755)


def remove_tree(directory: Path) -> None:
    """A directory with all that is in it, read-only or not, however deep it goes. Through no link."""
    if not directory.is_dir() or directory.is_symlink():
        directory.unlink(missing_ok=True)
        return
    directory.chmod(0o700)
    top = os.open(directory, _DIRECTORY)
    try:
        while _emptied_by_a_level(top):
            pass
    finally:
        os.close(top)
    directory.rmdir()


def _emptied_by_a_level(top: int) -> bool:
    """Remove the files at the top, and each directory there once its own have moved up; False when nothing is
    left. So nothing is ever named by a long path, nor opened deeper than one level."""
    folders = _without_files(top)
    for folder in folders:
        descriptor = os.open(folder, _DIRECTORY, dir_fd=top)
        try:
            for below in _without_files(descriptor):
                os.rename(below, secrets.token_hex(16), src_dir_fd=descriptor, dst_dir_fd=top)
        finally:
            os.close(descriptor)
        os.rmdir(folder, dir_fd=top)
    return bool(folders)


def _without_files(directory: int) -> list[str]:
    """The directories that are left, each of them open to us."""
    with os.scandir(directory) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    for name, is_directory in found:
        if is_directory:
            os.chmod(name, 0o700, dir_fd=directory)
        else:
            os.unlink(name, dir_fd=directory)
    return [name for name, is_directory in found if is_directory]


def _bits(mode: str, *, read_only: bool) -> int:
    if mode == "100755":
        return 0o555 if read_only else 0o755
    return 0o444 if read_only else 0o644


def _make_above(directory: Path, made: set[Path]) -> None:
    missing: list[Path] = []
    while directory not in made:
        missing.append(directory)
        directory = directory.parent
    for each in reversed(missing):
        each.mkdir(mode=0o755)
        made.add(each)


def _write(place: Path, content: bytes, bits: int) -> None:
    descriptor = os.open(place, _NEW, stat.S_IMODE(bits) | stat.S_IWUSR)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fchmod(descriptor, bits)
    finally:
        os.close(descriptor)
