"""What a worker may journal: events of its own run and of those that it was allowed to start below it.

The loop in the worker is ours; the process is not trusted all the same, since tools and users' scripts
run in it. Each event is held against what the runtime itself knows. Raises `Misbehaved`.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath

from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import SpawnRefused, UsageError
from xclaw.contracts.events import (
    Address,
    ApprovalAnswered,
    ApprovalAsked,
    ArtifactDelivered,
    AttemptFailed,
    ChildEnded,
    ChildSpawned,
    Compacted,
    Entry,
    Event,
    MessageAdded,
    ModelAnswered,
    NotificationQueued,
    PhaseChanged,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
    TurnStarted,
    Warned,
)
from xclaw.contracts.ids import child_run_id, task_id_from
from xclaw.contracts.projects import ProjectMerged
from xclaw.contracts.results import Result
from xclaw.contracts.team_events import BoardChanged, MailSent
from xclaw.contracts.usage import Usage
from xclaw.contracts.workflows import WorkflowNoted
from xclaw.contracts.workspaces import Workspace
from xclaw.runtime.approvals import BY_XCLAW
from xclaw.runtime.children import session_of
from xclaw.runtime.gate import tree_path
from xclaw.runtime.hosted_runs import HostedRun, Misbehaved
from xclaw.runtime.mail import MAIL_CHARACTERS, as_message, turn_of
from xclaw.runtime.orders import child_order, started_event
from xclaw.runtime.post import sender_of, team_mates
from xclaw.runtime.services import Services
from xclaw.runtime.tree import Node, Tree, most_children
from xclaw.runtime.wire import same_event

_APPROVAL_ID = re.compile(r"a[0-9a-f]{24}")
_TASK_ID_ATTEMPTS = 64


@dataclass(slots=True)
class Checks:
    """What the worker of `top` may record."""

    services: Services
    tree: Tree
    top: Node
    messages: dict[str, MessageAdded] = field(default_factory=dict[str, MessageAdded])
    """What was said to runs of the worker, by its id, as they read it."""
    answers: dict[str, ApprovalAnswered] = field(default_factory=dict[str, ApprovalAnswered])
    """What it was told about its questions."""

    def check(self, run: HostedRun, event: Event, runs: dict[str, HostedRun]) -> None:
        """An event of a run that has begun, before it is folded."""
        node, state = run.node, run.node.log.state
        match event:
            case ModelAnswered():
                run.take_answer(event.usage, event.cost_usd, event.model)
            case AttemptFailed():
                run.take_failure(event.usage, event.cost_usd)
            case Compacted():
                if event.usage != Usage() or event.cost_usd:
                    run.take_answer(event.usage, event.cost_usd, None)
            case ChildSpawned():
                self._check_spawn(node, event)
            case ChildEnded():
                self._check_result(
                    event.result, runs.get(event.child_run_id), event.child_run_id in state.children
                )
            case RunEnded():
                self._check_end(run, event)
            case MessageAdded():
                self._check_message(event)
            case MailSent():
                self._check_mail(node, event, state.children)
            case _:
                self._check_other(run, event)

    def _check_other(self, run: HostedRun, event: Event) -> None:
        node = run.node
        match event:
            case ApprovalAsked():
                if not _APPROVAL_ID.fullmatch(event.approval_id) or event.path != tree_path(node):
                    raise Misbehaved("it asked a question in another's name")
            case ApprovalAnswered():
                self._check_answer(node, event)
            case ArtifactDelivered():
                _check_artifact(node, run.workspace, event)
            case NotificationQueued():
                _refuse_if(node.parent is None or event.parent_run_id != node.parent.run_id, event)
            case BoardChanged():
                _refuse_if(
                    all(s.call_id != event.team_call_id for s in node.log.state.children.values()), event
                )
            case RunResumed():
                _refuse_if(node is self.top or event.owner != self.services.owner, event)
            case (
                TurnStarted()
                | ToolCallStarted()
                | ToolCallEnded()
                | Warned()
                | PhaseChanged()
                | WorkflowNoted()
                | ProjectMerged()
            ):
                pass
            case _:
                _refuse_if(True, event)

    def start(
        self, entry: Entry, parent: HostedRun, spawned: ChildSpawned, workspace: Workspace
    ) -> RunStarted:
        """The first event of a run that `parent` has recorded to have started: it has to be what the
        runtime would have made of it, permissions and limits above all."""
        event = entry.event
        place = Address(spawned.child_run_id, self.tree.root_id, parent.node.run_id, spawned.child_session_id)
        if not isinstance(event, RunStarted) or entry.address != place:
            raise Misbehaved("it put a run in another's place")
        try:
            order = child_order(self.services, self.tree, parent.node, spawned)
            own = started_event(self.services, self.tree, order, workspace)
        except UsageError as failure:
            raise Misbehaved(f"it started a run that cannot be: {failure}") from None
        # A worker has fewer tools than this process, at times, and its prompt says so.
        own = replace(own, tools=event.tools, instructions=event.instructions) if _fewer(event, own) else own
        if not same_event(own, event):
            raise Misbehaved(f"it started {event.agent[:80]!r} otherwise than the runtime would")
        return event

    def _check_spawn(self, node: Node, event: ChildSpawned) -> None:
        task, settings = event.task, self.tree.settings
        agent = self.services.agents.get(task.agent)
        if agent is None or agent.name != task.agent or (task.seat and task.seat.member != task.key):
            raise Misbehaved(f"it started an agent that it may not start: {task.agent[:80]!r}")
        names = (
            event.child_run_id == child_run_id(node.run_id, event.call_id, task.key)
            and event.task_id in _task_ids(event.child_run_id)
            and event.child_session_id
            == session_of(node.log.address.session_id, agent.name, task, event.task_id)
        )
        if not names or event.child_run_id in self.tree.nodes:
            raise Misbehaved("it gave a run another's name")
        if any(node.log.state.artifacts.get(pointer.path) != pointer for pointer in task.inputs):
            raise Misbehaved("it handed on an artifact that it does not have")
        if task.isolation not in self.services.launchers or _weaker(agent, event):
            raise Misbehaved(f"it started {agent.name} with another isolation")
        if node.depth >= settings.max_depth or len(node.log.state.children) >= most_children(node, settings):
            raise Misbehaved("it started a run beyond the limits of depth and width")
        if not self.tree.promised:
            raise Misbehaved("it started a run without asking")

    def _check_result(self, result: Result, child: HostedRun | None, known: bool) -> None:
        if child is not None and child.node.result is not None:
            if not same_result(child.node.result, result):
                raise Misbehaved("it changed a result")
        elif not known or result.succeeded or result.pointers or result.spend.calls:
            raise Misbehaved("it took a result that nobody gave")

    def _check_end(self, run: HostedRun, event: RunEnded) -> None:
        spent, said = run.node.ledger.spent, event.result.spend
        if run.node is self.top:
            raise Misbehaved("it recorded the end of its own run, which is the runtime's to record")
        if run.owed or (said.usage, said.calls) != (spent.usage, spent.calls):
            raise Misbehaved(
                f"it recorded {said.usage.total_tokens} tokens where {spent.usage.total_tokens} were used"
            )

    def _check_message(self, event: MessageAdded) -> None:
        if event.message_id and event != self.messages.get(event.message_id):
            raise Misbehaved("it took a message that was not for it")
        if event.origin == "user" and not event.message_id:
            raise Misbehaved("it spoke in the user's name")

    def _check_mail(self, node: Node, event: MailSent, children: Collection[str]) -> None:
        """Orders go down, to children; what goes to others is data, under the sender's own name."""
        above = node.parent.run_id if node.parent else ""
        to_child = event.origin == "agent" and event.to_run_id in children
        to_others = event.origin == "notification" and event.to_run_id in {above, *team_mates(node)}
        if not (to_child or to_others):
            raise Misbehaved("it wrote to a run that is neither its child nor its parent")
        is_turn = to_child and turn_of(event.mail_id) == event.to_run_id
        if not (is_turn or event.mail_id.startswith("mail_")) or (
            to_others and event.sender != sender_of(node)
        ):
            raise Misbehaved("it wrote in another's name")
        if len(event.text) > MAIL_CHARACTERS and not is_turn:
            raise Misbehaved(f"it wrote more than {MAIL_CHARACTERS} characters at once")
        self.messages[event.mail_id] = as_message(event)

    def _check_answer(self, node: Node, event: ApprovalAnswered) -> None:
        mine = any(
            asked.approval_id == event.approval_id for asked in node.log.state.questions.asked.values()
        )
        told = self.answers.get(event.approval_id)
        withdrawn = event.decision == "void" and event.by == BY_XCLAW
        if not mine or not (withdrawn or event == told):
            raise Misbehaved("it answered a question itself")


def same_result(first: Result, second: Result) -> bool:
    return same_event(RunEnded(first, first.outcome, 0), RunEnded(second, second.outcome, 0))


def refuse_admission(services: Services, tree: Tree, node: Node, agent: str, text: str) -> None:
    """Raise `SpawnRefused` unless `node` may start one more child, and `agent` may try this task again."""
    tree.admit(node, len(node.log.state.children))
    name = services.agents.resolve(agent)
    if name is not None and tree.attempts.is_open(name, text):
        raise SpawnRefused(f"{name} has failed three times at this task, here or in another process")


def _check_artifact(node: Node, workspace: Workspace, event: ArtifactDelivered) -> None:
    pointer = event.pointer
    inside = PurePosixPath(pointer.path).is_relative_to(workspace.delivery_dir)
    mine = (pointer.agent, pointer.run_id) == (node.agent, node.run_id)
    if not inside or ".." in PurePosixPath(pointer.path).parts or not mine:
        raise Misbehaved("it delivered a file that is not its own")


def _refuse_if(wrong: bool, event: Event) -> None:
    if wrong:
        raise Misbehaved(f"it recorded an event that is not its to record ({event.kind})")


def _task_ids(run_id: str) -> set[str]:
    return {task_id_from(run_id, attempt) for attempt in range(_TASK_ID_ATTEMPTS)}


def _weaker(agent: Agent, event: ChildSpawned) -> bool:
    return agent.isolation not in ("local", event.task.isolation)


def _fewer(event: RunStarted, own: RunStarted) -> bool:
    return set(event.tools) < set(own.tools)
