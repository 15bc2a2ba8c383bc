"""Workspaces as directories on this machine (SPEC F1)."""

import os
import threading
from weakref import WeakValueDictionary

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.ids import task_id_from
from xclaw.workspaces.containment import OutsideVisible, Region, absolute_parts, locate
from xclaw.workspaces.deliveries import Deliveries
from xclaw.workspaces.homes import Home
from xclaw.workspaces.names import safe_component, split_path
from xclaw.workspaces.sandboxed import SandboxedWorkspace
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
        self._root = absolute_parts(os.path.realpath(settings.root))
        self._opening = threading.Lock()
        self._homes: WeakValueDictionary[str, Home] = WeakValueDictionary()
        """Of runs with a task of their own, by the place each was named first."""

    def open(self, agent: str, task_id: str, run_id: str, *, sandboxed: bool | None = None) -> LocalWorkspace:
        """Names the run's directories; they are made when it first writes.

        Raises `UsageError` for a name with control characters, `OSError` when the disk refuses.
        """
        agent_part = safe_component(agent)
        task_part = safe_component(task_id or run_id)
        exclusive = _is_made_for(task_id, run_id)
        full = self._settings.mode == "full" if sandboxed is None else sandboxed
        with self._opening:
            if exclusive:
                self._settle_other(task_part, run_id)
            home = Home(
                self._root,
                agent_part,
                task_part,
                run_id,
                exclusive=exclusive,
                durable=self._settings.durable,
                sandboxed=full,
            )
            if exclusive:
                self._homes[task_part] = home
        kind = SandboxedWorkspace if full else LocalWorkspace
        return kind(self._settings, home, agent, run_id)

    def find(self, path: str) -> Pointer | None:
        try:
            is_absolute, parts = split_path(path, self._settings.path_rules)
            shared = Region(self._root, ("shared",))
            place = locate(parts, (shared,))
        except (ToolFailed, OutsideVisible):
            return None
        if not is_absolute or len(place.parts) < 2:
            return None
        return Deliveries(self._root, place.parts[0]).verify(place.parts[1:])

    def _settle_other(self, task_part: str, run_id: str) -> None:
        """Where a living run was named the same place, it claims it now: it was there first."""
        other = self._homes.get(task_part)
        if other is not None and other.run_id != run_id:
            other.claim()


def _is_made_for(task_id: str, run_id: str) -> bool:
    return any(task_id_from(run_id, attempt) == task_id for attempt in range(_TASK_ID_ATTEMPTS))
