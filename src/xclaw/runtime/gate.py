"""The gate of one run: which of its calls may run, and which wait for a person."""

import secrets
import time
from contextlib import suppress

from xclaw.contracts.errors import NotPermitted, UsageError
from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked, Event
from xclaw.contracts.messages import ToolCall
from xclaw.contracts.permissions import Permissions
from xclaw.contracts.tools import Quoting, Tool
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.arguments import decode_arguments
from xclaw.loop.parts import Admitted
from xclaw.loop.state import RunState
from xclaw.runtime.approvals import BY_XCLAW, Approvals, known_permissions
from xclaw.runtime.clocks import stopped_clocks
from xclaw.runtime.permissions import Verdict, decide
from xclaw.runtime.rules import Call, call_of, exact_rule
from xclaw.runtime.tree import Node, Tree, without_slot

MAX_ASKED_CHARS = 100_000
"""Of arguments: nobody can judge more."""
SHOWN_CHARS = 2_000
MAX_SHOWN_RULE = 200
"""Characters; in place of a longer one, such as one with a whole script, its tool is named."""
_FLAGS = {"shell": "--allow-shell", "workflow": "`xclaw workflow run --yes`"}
"""What allows a tool for one run."""
NOBODY = "nobody is there to be asked"


class CallGate:
    """Implements the loop's `Gate`. What it asks and learns is in the run's stream, nothing else is kept."""

    def __init__(self, approvals: Approvals, tree: Tree, node: Node, workspace: Workspace) -> None:
        self._approvals = approvals
        self._tree = tree
        self._node = node
        self._workspace = workspace

    @property
    def _permissions(self) -> Permissions:
        """As the run's first event has them."""
        started = self._node.log.state.started_event
        base = self._approvals.desk.base
        return known_permissions(started, base) if started else Permissions((base,))

    async def admit(self, tool: Tool, call: ToolCall, arguments: dict[str, object]) -> Admitted:
        questions = self._node.log.state.questions
        asked = questions.asked.get(call.id)
        if asked is None:
            verdict = await self._verdict(tool, arguments)
            if verdict.kind == "allow":
                return Admitted(arguments, call.arguments)
            if verdict.kind == "deny":
                raise NotPermitted(_forbidden(tool, verdict))
            asked = await self._ask(tool, call, arguments, verdict)
        answered = questions.answers.get(asked.approval_id)
        if answered is None:
            answered = await self._answer_to(asked)
            self._node.log.record(answered)
        return await self._admitted(tool, call, arguments, answered)

    async def _verdict(self, tool: Tool, arguments: dict[str, object]) -> Verdict:
        call = self._call(tool, arguments)
        verdict = decide(self._permissions, call, tool.spec.effect)
        if verdict.kind != "ask":
            return verdict
        granted = await self._approvals.granted(self._tree.session_id, self._node.agent)
        return decide(self._permissions, call, tool.spec.effect, granted) if granted else verdict

    def _call(self, tool: Tool, arguments: dict[str, object]) -> Call:
        return call_of(tool.spec.name, arguments, self._workspace)

    async def _ask(
        self, tool: Tool, call: ToolCall, arguments: dict[str, object], verdict: Verdict
    ) -> ApprovalAsked:
        """Put the question into the journal. Raises `NotPermitted` when it cannot be asked."""
        name, wanted = tool.spec.name, self._call(tool, arguments)
        rule = exact_rule(wanted)
        if rule and decide(self._permissions, wanted, tool.spec.effect, (rule,)).kind != "allow":
            rule = ""
        if self._approvals.desk.settings.unattended == "deny":
            raise NotPermitted(_unattended(name, verdict, rule))
        if len(call.arguments) > MAX_ASKED_CHARS:
            raise NotPermitted(
                f"{name} needs the user's permission, and nobody can judge {len(call.arguments):,} characters "
                f"of arguments: use at most {MAX_ASKED_CHARS:,}"
            )
        asked = ApprovalAsked(
            f"a{secrets.token_hex(12)}",
            call.id,
            name,
            call.arguments,
            await self._why(tool, arguments, verdict),
            rule,
            tree_path(self._node),
        )
        self._node.log.record(asked)
        await self._node.log.durable()
        return asked

    async def _why(self, tool: Tool, arguments: dict[str, object], verdict: Verdict) -> str:
        """Why it is asked, and what it may cost, where the tool can tell. Raises `ToolFailed`."""
        if not isinstance(tool, Quoting):
            return verdict.why
        return f"{verdict.why}; {await tool.quote(arguments, self._node.ledger.left())}"

    async def _answer_to(self, asked: ApprovalAsked) -> ApprovalAnswered:
        """Wait without a worker's place, and without the run's time going on."""
        with stopped_clocks(self._node):
            async with without_slot(self._tree, self._node):
                settings = self._approvals.desk.settings
                if settings.unattended == "deny":
                    return await self._without_an_answer(asked, NOBODY)
                timeout_s = settings.approval_timeout_s
                answered = await self._approvals.wait(asked.approval_id, await self._left(asked, timeout_s))
                if answered is not None:
                    return answered
                return await self._without_an_answer(asked, f"nobody answered within {timeout_s:g} s")

    async def _left(self, asked: ApprovalAsked, timeout_s: float | None) -> float | None:
        """What is left of the time since the question was asked, which may be before a restart."""
        if timeout_s is None:
            return None
        approval = await self._approvals.approval(asked.approval_id)
        return timeout_s - max(0.0, time.time() - approval.asked_at) if approval else timeout_s

    async def _without_an_answer(self, asked: ApprovalAsked, reason: str) -> ApprovalAnswered:
        """A denial, unless somebody answers at the last instant, or did while nobody drove the run."""
        denial = ApprovalAnswered(asked.approval_id, "deny", BY_XCLAW, reason)
        store = self._approvals.desk.store
        with suppress(UsageError):
            await store.settle(denial)
        return await store.answered(asked.approval_id) or denial

    async def _admitted(
        self, tool: Tool, call: ToolCall, arguments: dict[str, object], answered: ApprovalAnswered
    ) -> Admitted:
        name = tool.spec.name
        match answered.decision:
            case "deny" | "void":
                raise NotPermitted(_denied(name, answered))
            case "edit":
                edited = decode_arguments(name, answered.arguments, tool.spec.parameters)
                verdict = decide(self._permissions, self._call(tool, edited), tool.spec.effect)
                if verdict.kind == "deny":
                    raise NotPermitted(_forbidden(tool, verdict))
                shown = answered.arguments[:SHOWN_CHARS]
                note = f"[the user changed the arguments of this call before it ran, to {shown}]"
                return Admitted(edited, answered.arguments, note)
            case "always":
                # Again, in case a crash came between the answer and the file.
                await self._approvals.keep(self._tree.session_id, self._node.agent, answered.rule)
            case "once" | "session":
                pass
        return Admitted(arguments, call.arguments)


def voided(state: RunState) -> tuple[Event, ...]:
    """What withdraws the questions of a run that ends."""
    return tuple(
        ApprovalAnswered(asked.approval_id, "void", BY_XCLAW, "the run ended first")
        for asked in state.questions.unanswered()
    )


def tree_path(node: Node) -> tuple[str, ...]:
    names: list[str] = []
    above: Node | None = node
    while above is not None:
        names.append(above.agent)
        above = above.parent
    return tuple(reversed(names))


def _forbidden(tool: Tool, verdict: Verdict) -> str:
    return (
        f"{tool.spec.name} is not permitted here: {verdict.why}. Asking again will not help: go another way, or "
        "report what you could not do."
    )


def _denied(name: str, answered: ApprovalAnswered) -> str:
    if answered.by == BY_XCLAW:
        return (
            f"{name} was not permitted: {answered.reason}. Go another way, or report what you could not do."
        )
    why = f": {answered.reason}" if answered.reason else ""
    return f"the user denied this call of {name}{why}. Do not try the same by other means; do what is left without it."


def _unattended(name: str, verdict: Verdict, rule: str) -> str:
    shown = rule if len(rule) <= MAX_SHOWN_RULE else name
    allowing = f"a rule such as {shown} in `permissions.allow`" if rule else "a person who can answer"
    flag = f" or {_FLAGS[name]}" if name in _FLAGS and rule else ""
    return (
        f"{name} needs the user's permission ({verdict.why}), and {NOBODY}. What would let it run: {allowing}"
        f"{flag}. Go on without it, and report what you could not do."
    )
