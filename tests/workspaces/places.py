"""Workspaces in a temporary directory, for tests."""

from pathlib import Path

from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import PathRules, WorkspaceSettings
from xclaw.workspaces.workspace import LocalWorkspace

SECRET = "s3cret-content"


def workspaces(root: Path, *, durable: bool = False, path_rules: PathRules = "posix") -> LocalWorkspaces:
    return LocalWorkspaces(WorkspaceSettings(str(root), durable=durable, path_rules=path_rules))


def workspace(root: Path, agent: str = "coder", task: str = "task", run: str = "run-1") -> LocalWorkspace:
    opened = workspaces(root).open(agent, task, run)
    opened.prepare()
    return opened


def snapshot(root: Path) -> dict[str, tuple[str, bytes]]:
    """Everything below `root`, with types, contents and where links lead."""
    found: dict[str, tuple[str, bytes]] = {}
    for path in sorted(root.rglob("*")):
        if path.is_symlink():
            found[str(path)] = ("link", str(path.readlink()).encode())
        elif path.is_dir():
            found[str(path)] = ("directory", b"")
        else:
            found[str(path)] = ("file", path.read_bytes())
    return found
