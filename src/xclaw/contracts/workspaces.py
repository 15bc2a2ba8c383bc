"""The Workspace contract: what files a run may see, and where it delivers."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.artifacts import Pointer


@dataclass(frozen=True, slots=True)
class DirectoryItem:
    name: str
    type: str
    """"file", "directory", "link" or what else it is ("fifo", "socket", "device")."""
    size: int


@dataclass(frozen=True, slots=True)
class FileSlice:
    """Part of a file. `size` is the whole file's, in bytes; `text` is decoded, never raises."""

    text: str
    size: int
    offset: int
    next_offset: int | None
    """None at the end of the file."""
    binary: bool = False


@dataclass(frozen=True, slots=True)
class OpenedPath:
    """A regular file or a directory, open for reading."""

    descriptor: int
    size: int
    """Of a file, in bytes."""
    is_directory: bool


class Workspace(Protocol):
    """One run's files: a private directory, a delivery directory, and what it was handed, read-only.

    Every path a model names is resolved, links too, and refused outside those with `ToolFailed`,
    whose text never shows contents. Methods block briefly on disk; call them in a thread.
    """

    @property
    def private_dir(self) -> str: ...

    @property
    def delivery_dir(self) -> str: ...

    @property
    def shown_dir(self) -> str:
        """The private directory as the run's model and its commands name it."""
        ...

    @property
    def input_dir(self) -> str:
        """Holds copies of what was granted, for the run's sandbox; empty for a run that has none."""
        ...

    def prepare(self) -> None:
        """Make the directories, for a program that is started in them, and the copies for a sandbox of all
        that was granted by now. The other methods need no such call: what is not there yet lists as empty."""
        ...

    def release(self) -> None:
        """Remove what only the run's sandbox needed, once that is gone."""
        ...

    def grant(self, pointers: tuple[Pointer, ...]) -> None:
        """Let this run read these artifacts, and nothing beside them."""
        ...

    def show(self, directory: str, inside: str) -> None:
        """Let this run read a directory of this machine with all below it; it need not be there yet. A sandbox
        has it at `inside`."""
        ...

    def shown(self, pointer: Pointer) -> str:
        """The path by which the run's model reads an artifact that was granted."""
        ...

    def judged(self, path: str) -> tuple[str, str]:
        """For rules about paths: the one on this machine that `path` means, relative or absolute, and where
        the links on its way lead, empty to be found out. It need be neither allowed nor there."""
        ...

    def content(self, path: str) -> bytes:
        """A whole file that `read` could read. Raises `ToolFailed` also for one that is larger than a file may
        be."""
        ...

    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        """`offset` and `limit` in bytes."""
        ...

    def opened(self, path: str) -> AbstractContextManager[OpenedPath]:
        """A file or a directory as long as the context lasts. What is below a directory is to be opened from
        its descriptor, one name at a time and never through a link."""
        ...

    def list_directory(self, path: str, limit: int = 10_000) -> list[DirectoryItem]:
        """At most `limit` items, sorted by name; fewer than `limit` are all there are."""
        ...

    def write(self, path: str, content: bytes) -> str:
        """Write a private file atomically; answers its absolute path."""
        ...

    def edit(self, path: str, change: Callable[[bytes], bytes], limit: int) -> str:
        """Put in place of a private file, atomically, what `change` makes of its content; answers its
        absolute path. Edits of one workspace follow one another, so none is lost. What `change` raises
        leaves the file as it is. Raises `ToolFailed` for a file of more than `limit` bytes, and for one
        that somebody else wrote to meanwhile."""
        ...

    def deliver(self, path: str, content: bytes) -> Pointer:
        """Deliver a final artifact (SPEC D6). A name that exists becomes a new version."""
        ...

    def place(self, pointers: tuple[Pointer, ...]) -> list[str]:
        """Copy artifacts into the private directory, read-only, each under the name it was delivered by; of
        one name the last counts. Answers those names. Raises `ToolFailed` for one that is not as it was
        delivered."""
        ...

    def verify(self, path: str) -> Pointer | None:
        """The delivered artifact that `path` names, re-hashed; None when it is not one, or changed."""
        ...

    def delivered(self) -> list[Pointer]:
        """What this run delivered, in order."""
        ...

    def spill(self, name: str, content: str) -> str:
        """Keep an output too long for the conversation in a private file; answers its path."""
        ...


class Workspaces(Protocol):
    """Hands out workspaces; owns the layout of SPEC F1."""

    def open(self, agent: str, task_id: str, run_id: str, *, sandboxed: bool | None = None) -> Workspace:
        """The workspace of one run: its places are named at once, made when it first writes, and the
        same again after a restart. `sandboxed`: whether its paths are a sandbox's; None: as the settings say."""
        ...

    def find(self, path: str) -> Pointer | None:
        """The delivered artifact at `path`, verified, whoever delivered it."""
        ...
