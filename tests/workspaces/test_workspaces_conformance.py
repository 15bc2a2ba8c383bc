"""The shipped workspaces against the suite that every implementation passes, on a durable disk."""

from pathlib import Path

import pytest

from workspaces.places import workspaces
from xclaw.testing.workspace_conformance import WORKSPACE_CHECKS, WorkspaceCheck, check_name
from xclaw.workspaces.local import LocalWorkspaces


def durable(root: Path) -> LocalWorkspaces:
    return workspaces(root, durable=True)


@pytest.mark.parametrize("check", WORKSPACE_CHECKS, ids=check_name)
def test_local_workspaces_conform(check: WorkspaceCheck, tmp_path: Path) -> None:
    check(durable, tmp_path)
