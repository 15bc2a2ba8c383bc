"""Workspaces as directories on this machine (SPEC F1)."""

import os
from pathlib import Path

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.ids import task_id_from
from xclaw.workspaces.containment import (
    OutsideVisible,
    Place,
    Region,
    absolute_parts,
    locate,
    opened_directory,
)
from xclaw.workspaces.deliveries import Deliveries
from xclaw.workspaces.names import MARK, safe_component, split_path
from xclaw.workspaces.settings import WorkspaceSettings
from xclaw.workspaces.workspace import LocalWorkspace

_TASK_ID_ATTEMPTS = 32
"""How far a task id is recognised as one that was made for a run alone."""


class LocalWorkspaces:
    """Owns `{root}/agents/{agent}/{task}/` (private) and `{root}/shared/{task}/` (delivered).

    Agent and task become one safe directory name each. An empty task stands for the run itself. A
    task id that was made for one run stays that run's: where two sessions happen upon the same six
    digits, the later one gets directories of its own. Safe in any number of threads and processes.
    """

    def __init__(self, settings: WorkspaceSettings) -> None:
        self._settings = settings
        self._root_path = os.path.realpath(settings.root)
        self._root = absolute_parts(self._root_path)

    def open(self, agent: str, task_id: str, run_id: str) -> LocalWorkspace:
        """Raises `UsageError` for a name with control characters, `OSError` when the disk refuses."""
        agent_part = safe_component(agent)
        task_part = safe_component(task_id or run_id)
        Path(self._root_path).mkdir(mode=0o700, parents=True, exist_ok=True)
        if _is_made_for(task_id, run_id) and not self._deliveries(task_part).claim(run_id):
            task_part = f"{task_part}{MARK}{safe_component(run_id)}"
        deliveries = self._deliveries(task_part)
        private = Region(self._root, ("agents", agent_part, task_part))
        for region in (private, deliveries.region):
            with opened_directory(Place(region, ()), (), create=True):
                pass
        return LocalWorkspace(self._settings, private, deliveries, agent, run_id)

    def find(self, path: str) -> Pointer | None:
        try:
            is_absolute, parts = split_path(path, self._settings.path_rules)
            shared = Region(self._root, ("shared",))
            place = locate(parts, (shared,))
        except (ToolFailed, OutsideVisible):
            return None
        if not is_absolute or len(place.parts) < 2:
            return None
        return self._deliveries(place.parts[0]).verify(place.parts[1:])

    def _deliveries(self, task_part: str) -> Deliveries:
        return Deliveries(self._root, task_part, durable=self._settings.durable)


def _is_made_for(task_id: str, run_id: str) -> bool:
    return any(task_id_from(run_id, attempt) == task_id for attempt in range(_TASK_ID_ATTEMPTS))
