"""Opening files without ever leaving what a run may see.

A path is walked one component at a time from a trusted directory, each opened relative to the one
before and never through a link. A link is read, located among the visible directories, and walked
again from the top. Nothing is checked by name and used later, so swapping a directory for a link
in the middle can only make an open fail.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

from xclaw.workspaces.names import composed
from xclaw.workspaces.owners import give_to_owner

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_MAX_LINKS = 20
_DIRECTORY_MODE = 0o700


class OutsideVisible(Exception):
    """The path, or a link on its way, leaves what the run may see."""


class NotRegular(Exception):
    """It exists and is no regular file. The text says what it is."""


@dataclass(frozen=True, slots=True)
class Region:
    """A directory tree. `root` is trusted; `below` it no component may be a link."""

    root: tuple[str, ...]
    below: tuple[str, ...]
    seen: tuple[str, ...] = ()
    """Where a sandbox has it mounted: then paths and links that lead here are written so."""

    @property
    def parts(self) -> tuple[str, ...]:
        return self.root + self.below

    @property
    def named(self) -> tuple[str, ...]:
        """What a path that leads here begins with."""
        return self.seen or self.parts

    @property
    def path(self) -> str:
        return "/" + "/".join(self.parts)


@dataclass(frozen=True, slots=True)
class Place:
    """A path inside a region; `parts` holds no ".."."""

    region: Region
    parts: tuple[str, ...]

    @property
    def path(self) -> str:
        return "/" + "/".join(self.region.parts + self.parts)

    @property
    def shown(self) -> str:
        """The path as whoever works there writes it."""
        return "/" + "/".join(self.region.named + self.parts)


@dataclass(frozen=True, slots=True)
class Opened:
    """The directory of a place, open, and the last name in it: what is there is no link."""

    directory: int
    name: str
    place: Place


@dataclass(frozen=True, slots=True)
class _Link:
    target: str
    walked: tuple[str, ...]
    rest: tuple[str, ...]


def absolute_parts(path: str) -> tuple[str, ...]:
    return tuple(part for part in path.split("/") if part)


def collapsed(parts: tuple[str, ...]) -> tuple[str, ...]:
    """Absolute parts with "." and ".." taken out by name."""
    kept: list[str] = []
    for part in parts:
        if part == "..":
            if kept:
                kept.pop()
        elif part not in ("", "."):
            kept.append(part)
    return tuple(kept)


def locate(parts: tuple[str, ...], regions: tuple[Region, ...]) -> Place:
    """The place that absolute `parts` name. Raises `OutsideVisible`."""
    clean = collapsed(parts)
    for region in regions:
        length = len(region.named)
        if tuple(map(composed, clean[:length])) == tuple(map(composed, region.named)):
            return Place(region, clean[length:])
    raise OutsideVisible


@contextmanager
def opened_parent(place: Place, visible: tuple[Region, ...], *, create: bool = False) -> Generator[Opened]:
    """Walk to the directory that holds `place` (or to the region itself, as name ".").

    Links are followed as long as they stay inside `visible`; with none visible, no link is.
    `create` makes missing directories. Raises `OutsideVisible` and `OSError`.
    """
    for _ in range(_MAX_LINKS):
        step = _walk(place, create=create)
        if isinstance(step, Opened):
            try:
                yield step
            finally:
                os.close(step.directory)
            return
        place = _followed(place.region, step, visible)
    raise OSError(errno.ELOOP, "too many links")


@contextmanager
def opened_file(
    place: Place, visible: tuple[Region, ...], *, directories: bool = False
) -> Generator[tuple[int, os.stat_result]]:
    """A regular file, open for reading, never waiting for a pipe or a device; a directory too, if
    `directories`.

    Raises `OutsideVisible`, `NotRegular` and `OSError`.
    """
    with (
        opened_parent(place, visible) as parent,
        opened_here(parent.name, parent.directory, directories=directories) as opened,
    ):
        yield opened


@contextmanager
def opened_here(
    name: str, directory: int, *, directories: bool = False
) -> Generator[tuple[int, os.stat_result]]:
    """As `opened_file`, of one name in an open directory."""
    # Looked at first, since opening a device can have effects of its own; again once it is open.
    _require_regular(os.stat(name, dir_fd=directory, follow_symlinks=False), directories)
    descriptor = os.open(name, _FILE, dir_fd=directory)
    try:
        status = os.fstat(descriptor)
        _require_regular(status, directories)
        yield descriptor, status
    finally:
        os.close(descriptor)


@contextmanager
def opened_directory(place: Place, visible: tuple[Region, ...], *, create: bool = False) -> Generator[int]:
    """A directory, open. Raises `OutsideVisible` and `OSError`."""
    with opened_parent(place, visible, create=create) as parent:
        descriptor = _open_or_make(parent.name, parent.directory, create=create)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def kind_of(mode: int) -> str:
    """The word for a file type, as listings show it."""
    for matches, word in (
        (stat.S_ISREG, "file"),
        (stat.S_ISDIR, "directory"),
        (stat.S_ISLNK, "link"),
        (stat.S_ISFIFO, "fifo"),
        (stat.S_ISSOCK, "socket"),
    ):
        if matches(mode):
            return word
    return "device"


def _require_regular(status: os.stat_result, directories: bool) -> None:
    if not (stat.S_ISREG(status.st_mode) or (directories and stat.S_ISDIR(status.st_mode))):
        raise NotRegular(kind_of(status.st_mode))


def _walk(place: Place, *, create: bool) -> Opened | _Link:
    """One pass without following anything. The directory of an answer is the caller's to close."""
    directory = _open_region(place.region, create=create)
    walked: list[str] = []
    try:
        for index, part in enumerate(place.parts):
            name = _existing_name(part, directory)
            target = _link_target(name, directory)
            if target is not None:
                os.close(directory)
                return _Link(target, tuple(walked), place.parts[index + 1 :])
            if index == len(place.parts) - 1:
                return Opened(directory, name, Place(place.region, (*walked, name)))
            deeper = _open_or_make(name, directory, create=create)
            os.close(directory)
            directory = deeper
            walked.append(name)
    except OSError:
        os.close(directory)
        raise
    return Opened(directory, ".", Place(place.region, ()))


def _followed(region: Region, link: _Link, visible: tuple[Region, ...]) -> Place:
    if not visible:
        raise OutsideVisible
    start = () if link.target.startswith("/") else region.named + link.walked
    return locate(start + tuple(link.target.split("/")) + link.rest, visible)


def _open_region(region: Region, *, create: bool) -> int:
    directory = os.open("/" + "/".join(region.root), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    for part in region.below:
        try:
            deeper = _open_or_make(part, directory, create=create)
        finally:
            os.close(directory)
        directory = deeper
    return directory


def _open_or_make(name: str, directory: int, *, create: bool) -> int:
    try:
        return os.open(name, _DIRECTORY, dir_fd=directory)
    except FileNotFoundError:
        if not create:
            raise
    with contextlib.suppress(FileExistsError):  # somebody else may make it at the same moment
        os.mkdir(name, _DIRECTORY_MODE, dir_fd=directory)
    made = os.open(name, _DIRECTORY, dir_fd=directory)
    give_to_owner(made, directory)
    return made


def _existing_name(name: str, directory: int) -> str:
    """`name` as the directory spells it: composed and decomposed letters are the same name."""
    if name.isascii():
        return name
    try:
        os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        wanted = composed(name)
        same = [other for other in os.listdir(directory) if composed(other) == wanted]
        return same[0] if len(same) == 1 else name
    return name


def _link_target(name: str, directory: int) -> str | None:
    try:
        return os.readlink(name, dir_fd=directory)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.EINVAL:
            return None
        raise
