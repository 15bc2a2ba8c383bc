"""Questions to people: who waits, what was answered, and whose answer counts (SPEC J2).

An answer is stored before anybody is told of it. Telling the process that waits is a matter of speed
only: it looks again by itself, and a run that nobody drives finds its answer when it is taken up.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from dataclasses import dataclass

from xclaw.contracts.approvals import Answer, Approval, ApprovalStore
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.events import ApprovalAnswered, RunStarted
from xclaw.contracts.journal import Journal
from xclaw.contracts.permissions import Level, Permissions, parse_rule
from xclaw.contracts.tools import Tool, ToolSet
from xclaw.contracts.workspaces import Workspace, Workspaces
from xclaw.loop.arguments import decode_arguments
from xclaw.loop.json_blocks import encode_json
from xclaw.runtime.grants import Grant, GrantFile
from xclaw.runtime.permissions import PermissionSettings, Verdict, decide
from xclaw.runtime.rules import call_of

logger = logging.getLogger(__name__)

LOOK_AGAIN_S = 5.0
"""How often a waiting call looks for an answer that nobody told it of."""
TELL_S = 2.0
"""How long an answer waits for the process that it tells."""
REASON_CHARS = 2_000
BY_XCLAW = "xclaw"
"""Who answers when nobody did."""

Tell = Callable[[str, str], Awaitable[None]]
"""Tell the process of an owner that an approval was answered. May fail silently."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What approvals are handled with; app.py wires it."""

    store: ApprovalStore
    journal: Journal
    workspaces: Workspaces
    tools: Callable[[tuple[str, ...]], ToolSet]
    grants: GrantFile
    settings: PermissionSettings
    base: Level
    """What the settings say, for runs of earlier versions, which did not keep it."""
    tell: Tell
    identity: Callable[[str], str]
    """What an agent is called in the user's file: its name, and where it is defined if that came with a
    project. A file that takes the name of an agent that was trusted is another agent."""


class Approvals:
    """Every question of this home: those that calls of this process wait for, and all others."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self._waiting: dict[str, asyncio.Event] = {}

    async def pending(self, *, conversation_sessions: Collection[str] | None = None) -> list[Approval]:
        """What waits for an answer, the oldest first, whichever process drives it, or none.

        Only of trees whose root is in one of `conversation_sessions`, if they are given.
        """
        found = await self.desk.store.pending()
        if conversation_sessions is None:
            return found
        return [approval for approval in found if approval.root_session_id in conversation_sessions]

    async def approval(self, approval_id: str) -> Approval | None:
        """Any approval, also one that was answered."""
        return await self.desk.store.approval(approval_id)

    async def answer(self, approval_id: str, answer: Answer, *, by: str) -> Approval:
        """Answer for `by`; exactly that call then runs, once, or does not.

        Raises `UsageError` for an approval that is unknown, answered or void, and for an answer that it
        cannot have; nothing is changed then. Cancelling the wait lets the answer count.
        """
        desk = self.desk
        approval = await desk.store.approval(approval_id)
        answered = ApprovalAnswered(
            approval_id,
            answer.decision,
            by,
            answer.reason[:REASON_CHARS],
            encode_json(answer.arguments) if answer.arguments is not None else "",
            (answer.rule or (approval.rule if approval else "")).strip()
            if answer.decision in ("session", "always")
            else "",
        )
        if approval is not None and approval.status == "pending":
            await self._check(approval, answer, answered)
        approval = await desk.store.settle(answered)
        if answered.decision == "always":
            await self.keep(approval.root_session_id, approval.agent, answered.rule)
        if not self.wake(approval_id):
            with suppress(Exception):
                async with asyncio.timeout(TELL_S):
                    await desk.tell(approval.owner, approval_id)
        return approval

    async def keep(self, root_session_id: str, agent: str, rule: str) -> None:
        """Write a rule into the user's file. If that fails it holds for the conversation only."""
        user = await self.desk.store.user_of(root_session_id)
        try:
            await asyncio.to_thread(self.desk.grants.add, Grant(user, self.desk.identity(agent), rule))
        except (OSError, UsageError) as failure:
            logger.warning("the rule %s was not kept and holds in this conversation only: %s", rule, failure)

    async def granted(self, root_session_id: str, agent: str) -> tuple[str, ...]:
        """The rules that answers gave `agent`, in this conversation and for good."""
        user = await self.desk.store.user_of(root_session_id)
        kept = await asyncio.to_thread(self.desk.grants.rules, user, self.desk.identity(agent))
        return (*await self.desk.store.session_rules(root_session_id, agent), *kept)

    async def wait(self, approval_id: str, timeout_s: float | None) -> ApprovalAnswered | None:
        """The answer, once there is one; None when none came in time. Cancelling the wait changes nothing."""
        clock = asyncio.get_running_loop().time
        until = None if timeout_s is None else clock() + timeout_s
        told = self._waiting.setdefault(approval_id, asyncio.Event())
        try:
            while True:
                told.clear()
                answered = await self.desk.store.answered(approval_id)
                if answered is not None:
                    return answered
                left = LOOK_AGAIN_S if until is None else min(LOOK_AGAIN_S, until - clock())
                if left <= 0:
                    return None
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await told.wait()
        finally:
            self._waiting.pop(approval_id, None)

    def wake(self, approval_id: str) -> bool:
        """Have the call that waits for this answer look for it; false when none waits in this process."""
        told = self._waiting.get(approval_id)
        if told is not None:
            told.set()
        return told is not None

    async def _check(self, approval: Approval, answer: Answer, answered: ApprovalAnswered) -> None:
        """Raise `UsageError` for an answer that cannot be given to a pending approval."""
        if (answer.arguments is not None) != (answer.decision == "edit"):
            raise UsageError("arguments go with the answer `edit`, and with no other")
        if answer.rule and answer.decision not in ("session", "always"):
            raise UsageError("a rule goes with the answers `session` and `always` only")
        if answer.decision in ("once", "deny"):
            return
        run = await self._run_of(approval)
        if answer.decision == "edit":
            await self._check_edit(approval, answer.arguments or {}, run)
        else:
            self._check_rule(approval, answered.rule, run)

    async def _check_edit(self, approval: Approval, arguments: dict[str, object], run: "_Run") -> None:
        if run.tool is None:
            return  # known to the process that drives it only, which checks too
        try:
            decoded = decode_arguments(approval.tool, encode_json(arguments), run.tool.spec.parameters)
        except ToolFailed as failure:
            raise UsageError(f"these arguments cannot be used: {failure}") from None
        verdict = run.verdict(decoded)
        if verdict.kind == "deny":
            raise UsageError(f"these arguments are not permitted either: {verdict.why}")

    def _check_rule(self, approval: Approval, rule: str, run: "_Run") -> None:
        if not rule:
            raise UsageError(
                f"no rule is on offer for this call ({approval.why}): answer `once`, or name a rule"
            )
        try:
            parse_rule(rule)
        except ValueError as failure:
            raise UsageError(str(failure)) from None
        if not rule.isprintable():
            raise UsageError("a rule cannot hold control characters")
        verdict = run.verdict(run.arguments, rule)
        if verdict.kind != "allow":
            raise UsageError(f"{rule} would not let this call run: {verdict.why}. Answer `once` instead.")

    async def _run_of(self, approval: Approval) -> "_Run":
        entries = await self.desk.journal.read_run(approval.run_id)
        started = entries[0].event
        if not isinstance(started, RunStarted):
            raise UsageError(f"run {approval.run_id} cannot be read")
        tool = self.desk.tools((approval.tool,)).get(approval.tool)
        return _Run(
            tool,
            known_permissions(started, self.desk.base),
            self.desk.workspaces.open(
                started.agent, started.task_id, approval.run_id, sandboxed=bool(started.sandbox)
            ),
            decode_arguments(approval.tool, approval.arguments, {"type": "object"}),
        )


def known_permissions(started: RunStarted, base: Level) -> Permissions:
    """What a run may do; one that an earlier version began, what the settings say now."""
    return started.permissions if started.permissions.levels else Permissions((base,))


@dataclass(frozen=True, slots=True)
class _Run:
    """What an answer is checked against."""

    tool: Tool | None
    permissions: Permissions
    workspace: Workspace
    arguments: dict[str, object]

    def verdict(self, arguments: dict[str, object], *grants: str) -> Verdict:
        name = self.tool.spec.name if self.tool else ""
        effect = self.tool.spec.effect if self.tool else "acts"
        return decide(self.permissions, call_of(name, arguments, self.workspace), effect, grants)
