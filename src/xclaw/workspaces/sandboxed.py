"""The files of a run whose commands are executed in a sandbox: its paths are the sandbox's."""

from collections.abc import Generator
from contextlib import contextmanager
from os import stat_result

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.workspaces import DirectoryItem
from xclaw.workspaces.containment import OutsideVisible, Place, Region, collapsed, opened_parent
from xclaw.workspaces.deliveries import Deliveries
from xclaw.workspaces.homes import Home
from xclaw.workspaces.inputs import Inputs
from xclaw.workspaces.names import split_path
from xclaw.workspaces.refusals import shown
from xclaw.workspaces.settings import WorkspaceSettings
from xclaw.workspaces.workspace import LocalWorkspace


class SandboxedWorkspace(LocalWorkspace):
    """A `Workspace` in which `/workspace/…` and `/input/…` are what the sandbox has there, and relative paths
    mean `/workspace`. Links are followed as they lead in the sandbox.

    Artifacts that were granted are copied into the input directory under their delivered names, and can
    still be read by their pointers. What is delivered is named, not placed.
    """

    def __init__(self, settings: WorkspaceSettings, home: Home, agent: str, run_id: str) -> None:
        super().__init__(settings, home, agent, run_id)
        self._inputs = Inputs()

    @property
    def shown_dir(self) -> str:
        return Place(self._private, ()).shown

    @property
    def input_dir(self) -> str:
        return self._home.input.path

    def prepare(self) -> None:
        super().prepare()
        self._lay_out()

    def release(self) -> None:
        self._inputs.clear(self._home.input)

    def grant(self, pointers: tuple[Pointer, ...]) -> None:
        super().grant(pointers)
        for pointer in pointers:
            if pointer.run_id == self._run_id:
                continue
            try:
                self._inputs.add(pointer, self._granted_place(pointer).parts[1:])
            except OutsideVisible:
                continue  # no artifact of ours: whoever reads it is told

    def shown(self, pointer: Pointer) -> str:
        name = self._inputs.name(pointer)
        return Place(self._home.input, name).shown if name else pointer.path

    def judged(self, path: str) -> tuple[str, str]:
        try:
            place = self._located(path)
        except (ToolFailed, OutsideVisible):
            return path, ""
        try:
            with opened_parent(place, self._visible) as parent:
                return place.path, parent.place.path
        except (OutsideVisible, OSError):
            return place.path, ""

    def list_directory(self, path: str, limit: int = 10_000) -> list[DirectoryItem]:
        self._lay_out_for(path)
        return super().list_directory(path, limit)

    @contextmanager
    def _opened(self, path: str, *, directories: bool = False) -> Generator[tuple[int, stat_result]]:
        self._lay_out_for(path)
        with super()._opened(path, directories=directories) as opened:
            yield opened

    def _readable(self, path: str) -> tuple[Place, tuple[Region, ...], Pointer | None]:
        is_absolute, parts = split_path(path, self._settings.path_rules)
        inside = collapsed(parts)
        length = len(self._home.input.named)
        if is_absolute and inside[:length] == self._home.input.named:
            pointer = self._inputs.at(inside[length:])
            if pointer is not None:
                return self._granted_place(pointer), (), pointer
        return super()._readable(path)

    def _writable(self, path: str) -> Place:
        try:
            if self._located(path).region == self._home.input:
                raise ToolFailed(
                    f"{shown(path)} is what you were handed, to be read only; write to {self.shown_dir}"
                )
        except OutsideVisible:
            pass  # told in one place
        return super()._writable(path)

    def _deliverable(self, path: str) -> tuple[str, ...]:
        is_absolute, parts = split_path(path, self._settings.path_rules)
        if is_absolute or len(parts) != 1 or parts == ("..",):
            raise ToolFailed(f"{shown(path)}: deliver takes a bare file name such as report.md")
        return super()._deliverable(path)

    def _allowed(self) -> str:
        read = " and ".join((Place(self._home.input, ()).shown, *self._home.shown))
        return f"There are {self.shown_dir}, which is yours, and {read}, which can be read; a relative path means the first"

    def _lay_out_for(self, path: str) -> None:
        """Before something may be looked for among the copies."""
        try:
            wanted = self._located(path).region
        except (ToolFailed, OutsideVisible):
            return
        if wanted == self._home.input:
            self._lay_out()

    def _lay_out(self) -> None:
        self._home.claim()
        self._inputs.lay_out(self._home.input, self._content_of)

    def _content_of(self, pointer: Pointer) -> bytes:
        parts = self._granted_place(pointer).parts
        return Deliveries(self._private.root, parts[0]).content(parts[1:], pointer.sha256)[1]
