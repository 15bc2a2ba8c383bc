"""The task board of one team, read from the events in its lead's stream."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.team_events import BoardChange, BoardChanged
from xclaw.contracts.teams import TeamTask
from xclaw.loop.state import RunState

MAX_TASKS = 200
TEXT_CHARACTERS = 2_000


class Board:
    """Reads and changes a board. Each change looks and records in one step, so that it cannot be overtaken."""

    def __init__(
        self,
        lead: RunState,
        team_call_id: str,
        record: Callable[[BoardChanged], None],
        ended: Callable[[str], str],
    ) -> None:
        """`record` journals into the lead's stream; `ended` answers how a member has ended, if it has."""
        self._lead = lead
        self._team = team_call_id
        self._record = record
        self._ended = ended

    def tasks(self) -> dict[str, TeamTask]:
        """By id, in order. What a member had claimed when it ended is open again."""
        tasks = _folded(self._changes())
        return {
            task.id: replace(task, state="open", by="")
            if task.state == "claimed" and self._ended(task.by)
            else task
            for task in tasks.values()
        }

    def add(self, member: str, call_id: str, text: str, after: tuple[str, ...]) -> TeamTask:
        if (done := self._done(call_id)) is not None:
            return done
        tasks = self.tasks()
        if len(tasks) >= MAX_TASKS:
            raise ToolFailed(f"the board is full: it takes {MAX_TASKS} tasks")
        if len(text) > TEXT_CHARACTERS:
            raise ToolFailed(f"a task has at most {TEXT_CHARACTERS} characters; put more into a file")
        for each in after:
            _found(tasks, each)
        task_id = f"t{len(tasks) + 1}"
        return self._change("added", task_id, member, call_id, text, after)

    def claim(self, member: str, call_id: str, task_id: str) -> TeamTask:
        if (done := self._done(call_id)) is not None:
            return done
        tasks = self.tasks()
        task = _found(tasks, task_id)
        if task.state == "claimed" and task.by == member:
            return task
        if task.state != "open":
            raise ToolFailed(f"{task.id} is {task.state} by {task.by}; choose another")
        missing = [each for each in task.after if tasks[each].state != "done"]
        if missing:
            raise ToolFailed(f"{task.id} has to wait for {', '.join(missing)}")
        return self._change("claimed", task.id, member, call_id)

    def complete(self, member: str, call_id: str, task_id: str, note: str) -> TeamTask:
        if (done := self._done(call_id)) is not None:
            return done
        task = self._own(member, task_id)
        return self._change("completed", task.id, member, call_id, note[:TEXT_CHARACTERS])

    def release(self, member: str, call_id: str, task_id: str) -> TeamTask:
        if (done := self._done(call_id)) is not None:
            return done
        task = self._own(member, task_id)
        return self._change("released", task.id, member, call_id)

    def _own(self, member: str, task_id: str) -> TeamTask:
        task = _found(self.tasks(), task_id)
        if task.state != "claimed" or task.by != member:
            holder = f"claimed by {task.by}" if task.state == "claimed" else task.state
            raise ToolFailed(f"{task.id} is not yours: it is {holder}. Claim it first")
        return task

    def _changes(self) -> list[BoardChanged]:
        return self._lead.exchange.boards.get(self._team, [])

    def _done(self, call_id: str) -> TeamTask | None:
        """What this very call changed, before a crash."""
        for change in self._changes():
            if change.call_id == call_id:
                return self.tasks()[change.board_task_id]
        return None

    def _change(
        self,
        change: BoardChange,
        task_id: str,
        member: str,
        call_id: str,
        text: str = "",
        after: tuple[str, ...] = (),
    ) -> TeamTask:
        self._record(BoardChanged(self._team, change, task_id, member, call_id, text, after))
        return self.tasks()[task_id]


def _folded(changes: list[BoardChanged]) -> dict[str, TeamTask]:
    tasks: dict[str, TeamTask] = {}
    for change in changes:
        task_id = change.board_task_id
        match change.change:
            case "added":
                tasks[task_id] = TeamTask(task_id, change.text, "open", after=change.after)
            case "claimed":
                tasks[task_id] = replace(tasks[task_id], state="claimed", by=change.member)
            case "completed":
                tasks[task_id] = replace(tasks[task_id], state="done", by=change.member, note=change.text)
            case "released":
                tasks[task_id] = replace(tasks[task_id], state="open", by="")
    return tasks


def _found(tasks: Mapping[str, TeamTask], task_id: str) -> TeamTask:
    task = tasks.get(task_id.strip().lower())
    if task is None:
        raise ToolFailed(f"there is no task {task_id[:40]!r}; there are {', '.join(tasks) or 'none'}")
    return task
