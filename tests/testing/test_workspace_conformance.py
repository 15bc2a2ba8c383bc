"""The workspace suite passes the shipped workspaces and catches careless ones."""

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.workspaces import DirectoryItem, FileSlice, OpenedPath, Workspace, Workspaces
from xclaw.testing.workspace_conformance import (
    WORKSPACE_CHECKS,
    WorkspaceCheck,
    check_deliveries_are_pointers,
    check_files_are_edited,
    check_files_come_back,
    check_grants_open_one_file,
    check_links_do_not_lead_out,
    check_name,
    check_nothing_is_overwritten,
    check_nothing_outside_is_reached,
)
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


def _local(root: Path) -> LocalWorkspaces:
    return LocalWorkspaces(WorkspaceSettings(str(root), durable=False))


class _Passing:
    """Hands everything on to a right workspace; its children are careless in one method."""

    def __init__(self, right: Workspace) -> None:
        self.right = right

    @property
    def private_dir(self) -> str:
        return self.right.private_dir

    @property
    def delivery_dir(self) -> str:
        return self.right.delivery_dir

    def prepare(self) -> None:
        self.right.prepare()

    def grant(self, pointers: tuple[Pointer, ...]) -> None:
        self.right.grant(pointers)

    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        return self.right.read(path, offset, limit)

    def list_directory(self, path: str, limit: int = 10_000) -> list[DirectoryItem]:
        return self.right.list_directory(path, limit)

    def write(self, path: str, content: bytes) -> str:
        return self.right.write(path, content)

    def edit(self, path: str, change: Callable[[bytes], bytes], limit: int) -> str:
        return self.right.edit(path, change, limit)

    def opened(self, path: str) -> AbstractContextManager[OpenedPath]:
        return self.right.opened(path)

    def deliver(self, path: str, content: bytes) -> Pointer:
        return self.right.deliver(path, content)

    def verify(self, path: str) -> Pointer | None:
        return self.right.verify(path)

    def delivered(self) -> list[Pointer]:
        return self.right.delivered()

    def spill(self, name: str, content: str) -> str:
        return self.right.spill(name, content)


class _ComparesPrefixes(_Passing):
    """The text of the path decides, links are followed: F01 and F02."""

    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        whole = os.path.normpath(Path(self.private_dir) / path)
        if not whole.startswith((self.private_dir, self.delivery_dir)):
            return self.right.read(path, offset, limit)
        text = Path(whole).read_text()
        return FileSlice(text, len(text), offset, None)


class _GrantsDirectories(_Passing):
    def grant(self, pointers: tuple[Pointer, ...]) -> None:
        self._open = {str(Path(pointer.path).parent) for pointer in pointers}

    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        if str(Path(path).parent) in getattr(self, "_open", set[str]()):
            return FileSlice(Path(path).read_text(), 0, 0, None)
        return self.right.read(path, offset, limit)


class _Overwrites(_Passing):
    def deliver(self, path: str, content: bytes) -> Pointer:
        pointer = self.right.deliver(path, content)
        Path(path).chmod(0o600)
        Path(path).write_bytes(content)
        return pointer


class _NeverRehashes(_Passing):
    def __init__(self, right: Workspace) -> None:
        super().__init__(right)
        self._known: dict[str, Pointer] = {}

    def deliver(self, path: str, content: bytes) -> Pointer:
        pointer = self.right.deliver(path, content)
        self._known[pointer.path] = pointer
        return pointer

    def verify(self, path: str) -> Pointer | None:
        return self._known.get(path)


class _LosesBytes(_Passing):
    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        got = self.right.read(path, offset, limit)
        return FileSlice(got.text.encode().decode("ascii", "ignore"), got.size, offset, got.next_offset)


class _EditsInTwoSteps(_Passing):
    """By name, whatever is there by then."""

    def edit(self, path: str, change: Callable[[bytes], bytes], limit: int) -> str:
        whole = Path(self.private_dir) / path
        whole.write_bytes(change(whole.read_bytes()))
        return str(whole)


class _ShowsContents(_Passing):
    def read(self, path: str, offset: int = 0, limit: int = 100_000) -> FileSlice:
        try:
            return self.right.read(path, offset, limit)
        except ToolFailed as error:
            found = Path(path)
            raise ToolFailed(f"{error}: {found.read_text() if found.is_file() else ''}") from None


class _Workspaces:
    def __init__(self, root: Path, flawed: Callable[[Workspace], Workspace]) -> None:
        self._right: Workspaces = _local(root)
        self._flawed = flawed

    def open(self, agent: str, task_id: str, run_id: str, *, sandboxed: bool | None = None) -> Workspace:
        return self._flawed(self._right.open(agent, task_id, run_id, sandboxed=sandboxed))

    def find(self, path: str) -> Pointer | None:
        return self._right.find(path)


@pytest.mark.parametrize("check", WORKSPACE_CHECKS, ids=check_name)
def test_the_shipped_workspaces_pass(check: WorkspaceCheck, tmp_path: Path) -> None:
    check(_local, tmp_path)


@pytest.mark.parametrize(
    ("flawed", "check"),
    [
        (_ComparesPrefixes, check_nothing_outside_is_reached),
        (_ComparesPrefixes, check_links_do_not_lead_out),
        (_GrantsDirectories, check_grants_open_one_file),
        (_Overwrites, check_nothing_is_overwritten),
        (_NeverRehashes, check_deliveries_are_pointers),
        (_LosesBytes, check_files_come_back),
        (_EditsInTwoSteps, check_files_are_edited),
        (_ShowsContents, check_nothing_outside_is_reached),
    ],
)
def test_careless_workspaces_are_caught(
    flawed: Callable[[Workspace], Workspace], check: WorkspaceCheck, tmp_path: Path
) -> None:
    with pytest.raises(AssertionError):
        check(lambda root: _Workspaces(root, flawed), tmp_path)
