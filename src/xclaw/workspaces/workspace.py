"""The files of one run."""

import hashlib
import itertools
import os
import stat
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.workspaces import DirectoryItem, FileSlice, OpenedPath
from xclaw.workspaces.containment import (
    NotRegular,
    Opened,
    OutsideVisible,
    Place,
    Region,
    collapsed,
    kind_of,
    locate,
    opened_directory,
    opened_file,
    opened_parent,
)
from xclaw.workspaces.deliveries import Deliveries
from xclaw.workspaces.disk import read_slice, read_whole, replace_file
from xclaw.workspaces.edits import changed_content, in_turn
from xclaw.workspaces.grants import Grants
from xclaw.workspaces.homes import Home
from xclaw.workspaces.names import (
    TEMPORARY_PREFIX,
    check_new_names,
    safe_component,
    split_path,
)
from xclaw.workspaces.refusals import explained, readable_name, shown, similar_names
from xclaw.workspaces.settings import WorkspaceSettings

_STRICT: tuple[Region, ...] = ()
_PRIVATE_MODE = 0o600
_READ_ONLY = 0o444
_SPILL_DIRECTORY = "outputs"


class LocalWorkspace:
    """A `Workspace` on directories.

    A relative path means the private directory; where nothing is there, an artifact that was handed
    on or delivered under that name. Links are followed as long as they stay inside the private and
    the delivery directory. `verify` answers for the run's own delivery directory and for what it was
    granted. Holds no open files.
    """

    def __init__(
        self,
        settings: WorkspaceSettings,
        home: Home,
        agent: str,
        run_id: str,
    ) -> None:
        self._settings = settings
        self._home = home
        self._agent = agent
        self._run_id = run_id
        self._grants = Grants()

    @property
    def _private(self) -> Region:
        return self._home.private

    @property
    def _deliveries(self) -> Deliveries:
        return self._home.deliveries

    @property
    def _visible(self) -> tuple[Region, ...]:
        return self._home.visible

    @property
    def private_dir(self) -> str:
        return self._private.path

    @property
    def delivery_dir(self) -> str:
        return self._deliveries.region.path

    @property
    def shown_dir(self) -> str:
        return self.private_dir

    @property
    def input_dir(self) -> str:
        return ""

    def prepare(self) -> None:
        self._home.make()

    def release(self) -> None:
        pass

    def shown(self, pointer: Pointer) -> str:
        return pointer.path

    def judged(self, path: str) -> tuple[str, str]:
        return path, ""

    def show(self, directory: str, inside: str) -> None:
        self._home.show(directory, inside)

    def grant(self, pointers: tuple[Pointer, ...]) -> None:
        self._grants.add(pointers)

    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        if offset < 0 or limit < 1:
            raise ToolFailed(f"offset must be 0 or more and limit 1 or more, not {offset} and {limit}")
        limit = min(limit, self._settings.max_read_bytes)
        self._home.look()
        with self._explained(path, "read"), self._opened(path) as (descriptor, status):
            return read_slice(descriptor, status.st_size, offset, limit)

    def content(self, path: str) -> bytes:
        limit = self._settings.max_file_bytes
        self._home.look()
        with self._explained(path, "read"), self._opened(path) as (descriptor, status):
            content = read_whole(descriptor, min(status.st_size, limit) + 1)
        if status.st_size > limit or len(content) > limit:
            raise ToolFailed(f"{shown(path)} has {status.st_size} bytes, a file may have {limit}")
        return content

    @contextmanager
    def opened(self, path: str) -> Generator[OpenedPath]:
        self._home.look()
        with ExitStack() as stack:
            with self._explained(path, "open"):
                try:
                    descriptor, status = stack.enter_context(self._opened(path, directories=True))
                except FileNotFoundError:
                    if self._located(path).parts:
                        raise
                    self.prepare()  # one of the run's own directories, before anything was written to it
                    descriptor, status = stack.enter_context(self._opened(path, directories=True))
            yield OpenedPath(descriptor, status.st_size, stat.S_ISDIR(status.st_mode))

    def list_directory(self, path: str, limit: int = 10_000) -> list[DirectoryItem]:
        limit = min(limit, self._settings.max_entries)
        self._home.look()
        with self._explained(path, "list"):
            place = self._located(path)
            try:
                with opened_directory(place, self._visible) as directory, os.scandir(directory) as entries:
                    wanted = (entry for entry in entries if not entry.name.startswith(TEMPORARY_PREFIX))
                    found = itertools.chain.from_iterable(map(_items, wanted))
                    return sorted(itertools.islice(found, limit), key=lambda item: item.name)
            except FileNotFoundError:
                if place.parts:
                    raise
                return []  # the run's own directory, which is made when something is written to it

    def write(self, path: str, content: bytes) -> str:
        self._check_size(content)
        with (
            self._explained(path, "write"),
            opened_parent(self._writable(path), self._visible, create=True) as parent,
        ):
            return self._replace(parent, content)

    def edit(self, path: str, change: Callable[[bytes], bytes], limit: int) -> str:
        self._home.look()
        with explained(path, "edit", self._allowed, lambda: self._editable_instead(path)):
            place = self._writable(path)
            with in_turn(self._private.path), opened_parent(place, self._visible) as parent:
                if parent.place.region != self._private:
                    raise OutsideVisible
                content = changed_content(parent.name, parent.directory, change, limit)
                self._check_size(content)
                return self._replace(parent, content)

    def place(self, pointers: tuple[Pointer, ...]) -> list[str]:
        self.prepare()
        placed: dict[str, None] = {}
        for pointer in pointers:
            parts = self._granted_place(pointer).parts
            name, content = Deliveries(self._private.root, parts[0]).content(parts[1:], pointer.sha256)
            with (
                self._explained(name, "lay out"),
                opened_parent(Place(self._private, tuple(name.split("/"))), _STRICT, create=True) as parent,
            ):
                replace_file(parent.directory, parent.name, content, _READ_ONLY, durable=False)
            placed[name] = None
        return list(placed)

    def deliver(self, path: str, content: bytes) -> Pointer:
        self._check_size(content)
        if not content:
            raise ToolFailed("there is nothing to deliver: the content is empty; deliver the finished file")
        with self._explained(path, "deliver"):
            self._home.look()
            parts = self._deliverable(path)
            check_new_names(parts)
            self._home.claim()
            return self._deliveries.deliver(parts, content, self._agent, self._run_id)

    def verify(self, path: str) -> Pointer | None:
        self._home.look()
        try:
            is_absolute, parts = split_path(path, self._settings.path_rules)
            if is_absolute:
                return self._verify_absolute(parts)
            newest = self._deliveries.newest("/".join(parts), self._run_id)
            if newest is not None:
                return self._deliveries.verify(tuple(newest.path.split("/")))
            own = locate(self._deliveries.region.parts + parts, (self._deliveries.region,))
            return self._deliveries.verify(own.parts)
        except (ToolFailed, OutsideVisible):
            return None

    def delivered(self) -> list[Pointer]:
        self._home.look()
        return self._deliveries.delivered_by(self._run_id)

    def spill(self, name: str, content: str) -> str:
        raw = content.encode("utf-8", "backslashreplace")
        digest = hashlib.sha256(raw).hexdigest()[:8]
        try:
            stem = safe_component(name.removesuffix(".txt"))
        except UsageError:
            stem = safe_component(repr(name))
        return self.write(f"{_SPILL_DIRECTORY}/{stem}-{digest}.txt", raw)

    @contextmanager
    def _opened(self, path: str, *, directories: bool = False) -> Generator[tuple[int, os.stat_result]]:
        place, follow, granted = self._readable(path)
        with opened_file(place, follow, directories=directories and granted is None) as (descriptor, status):
            if granted is not None and status.st_size != granted.size:
                raise ToolFailed(f"{shown(path)} has changed since it was delivered; ask for it again")
            yield descriptor, status

    def _writable(self, path: str) -> Place:
        """Where a private file may be written. Claims the home, which may move it."""
        self._home.look()
        place = self._located(path)
        check_new_names(place.parts)
        if place.region not in self._home.own:
            raise ToolFailed(f"{shown(path)} can only be read; write a relative path")
        if place.region != self._private:
            raise ToolFailed(f"{shown(path)} is a delivered place; use deliver, or write a relative path")
        if not place.parts or path.endswith("/"):
            raise ToolFailed(f"{shown(path)} names a directory; name a file")
        self._home.claim()
        return Place(self._private, place.parts)

    def _editable_instead(self, path: str) -> str:
        """What to do about a file that is not there to be edited."""
        try:
            place, _, _ = self._readable(path)
        except (ToolFailed, OutsideVisible, OSError):
            return ""
        if place.region != self._private:
            return " in your workspace. It is a delivered artifact, which stays as it is: write_file makes a copy"
        return f"{self._similar(path)}; write_file makes a new file"

    def _located(self, path: str) -> Place:
        is_absolute, parts = split_path(path, self._settings.path_rules)
        return locate(parts if is_absolute else self._private.named + parts, self._visible)

    def _readable(self, path: str) -> tuple[Place, tuple[Region, ...], Pointer | None]:
        """Where `path` is, the regions its links may lead to, and the grant that lets it be read."""
        is_absolute, parts = split_path(path, self._settings.path_rules)
        absolute = collapsed(parts if is_absolute else self._private.named + parts)
        pointer = self._grants.at(absolute)
        if pointer is not None:
            return self._granted_place(pointer), _STRICT, pointer
        place = locate(absolute, self._visible)
        if is_absolute or self._exists(place):
            return place, self._visible, None
        named = self._grants.named(parts)
        if named is not None:
            return self._granted_place(named), _STRICT, named
        newest = self._deliveries.newest("/".join(parts), self._run_id)
        if newest is not None:
            return Place(self._deliveries.region, tuple(newest.path.split("/"))), _STRICT, None
        return place, self._visible, None

    def _granted_place(self, pointer: Pointer) -> Place:
        return locate(tuple(pointer.path.split("/")), (Region(self._private.root, ("shared",)),))

    def _exists(self, place: Place) -> bool:
        try:
            with opened_parent(place, self._visible) as parent:
                os.stat(parent.name, dir_fd=parent.directory, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def _deliverable(self, path: str) -> tuple[str, ...]:
        is_absolute, parts = split_path(path, self._settings.path_rules)
        region = self._deliveries.region
        try:
            place = locate(parts if is_absolute else region.parts + parts, (region,))
        except OutsideVisible:
            raise ToolFailed(
                f"{shown(path)} is outside the delivery directory; deliver to a file name, or to a path "
                f"inside {region.path}"
            ) from None
        if not place.parts or path.endswith("/"):
            raise ToolFailed(f"{shown(path)} names a directory; deliver to a file name such as report.md")
        return place.parts

    def _verify_absolute(self, parts: tuple[str, ...]) -> Pointer | None:
        absolute = collapsed(parts)
        granted = self._grants.at(absolute)
        if granted is None:
            return self._deliveries.verify(locate(absolute, (self._deliveries.region,)).parts)
        place = self._granted_place(granted)
        giver = Deliveries(self._private.root, place.parts[0])
        found = giver.verify(place.parts[1:])
        return found if found is not None and found.sha256 == granted.sha256 else None

    def _replace(self, parent: Opened, content: bytes) -> str:
        if parent.place.region != self._private:
            raise OutsideVisible
        mode = _PRIVATE_MODE
        try:
            status = os.stat(parent.name, dir_fd=parent.directory, follow_symlinks=False)
        except FileNotFoundError:
            pass
        else:
            if not stat.S_ISREG(status.st_mode):
                raise NotRegular(kind_of(status.st_mode))
            mode = stat.S_IMODE(status.st_mode) & 0o777
        replace_file(parent.directory, parent.name, content, mode, durable=self._settings.durable)
        return parent.place.shown

    def _check_size(self, content: bytes) -> None:
        limit = self._settings.max_file_bytes
        if len(content) > limit:
            raise ToolFailed(f"the content has {len(content)} bytes, a file may have {limit}; split it")

    def _explained(self, path: str, action: str) -> AbstractContextManager[None]:
        return explained(path, action, self._allowed, lambda: self._similar(path))

    def _allowed(self) -> str:
        also = " and ".join(part for part in (self._grants.listed(), *self._home.shown) if part)
        text = f"Allowed: relative paths, and paths inside {self.private_dir} or {self.delivery_dir}"
        return f"{text}; to read also {also}" if also else text

    def _similar(self, path: str) -> str:
        try:
            return similar_names(self._located(path), self._visible)
        except OutsideVisible:
            return ""


def _items(entry: os.DirEntry[str]) -> list[DirectoryItem]:
    """The entry, or nothing when it has just been removed."""
    try:
        status = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return []
    return [DirectoryItem(readable_name(entry.name), kind_of(status.st_mode), status.st_size)]
