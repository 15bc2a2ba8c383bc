"""Routes for approvals: what waits for a person, and the person's answer."""

from dataclasses import replace
from typing import Annotated

import msgspec

from xclaw.contracts.approvals import Answer, Approval, ApprovalStatus, Decision
from xclaw.contracts.errors import UsageError
from xclaw.contracts.sessions import SessionRow
from xclaw.gateway.channels.api_errors import ApiRefusal
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, Nothing, Whose
from xclaw.gateway.wire import Data

Rule = Annotated[str, msgspec.Meta(max_length=1_000)]


class ApprovalAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One question: may this call run?"""

    approval: str
    session: str
    run: str
    root: str
    agent: str
    path: tuple[str, ...]
    """Names of the agents from the root to the one that asks."""
    tool: str
    arguments: str
    """JSON text of an object."""
    why: str
    rule: str
    """What "session" and "always" would allow from then on; empty: they are not on offer."""
    asked_at: float
    status: ApprovalStatus


class DecideBody(msgspec.Struct, frozen=True, kw_only=True):
    """What a person decided."""

    decision: Decision
    reason: Annotated[str, msgspec.Meta(max_length=2_000, description="For the agent, of a denial.")] = ""
    arguments: Annotated[Data | None, msgspec.Meta(description='Of "edit": what to run instead.')] = None
    rule: Annotated[Rule, msgspec.Meta(description="What to allow, if not what is on offer.")] = ""


async def list_approvals(call: Call[Nothing, Whose]) -> tuple[ApprovalAnswer, ...]:
    found: list[ApprovalAnswer] = []
    for approval in await call.gateway.services.approvals.pending():
        session = await _own_session(call, approval)
        if session is not None:
            found.append(_answer(approval, session))
    return tuple(found)


async def decide_approval(call: Call[DecideBody, Whose]) -> ApprovalAnswer:
    wanted, body = call.path["approval"], call.body
    approvals = call.gateway.services.approvals
    approval = await approvals.approval(wanted)
    session = await _own_session(call, approval) if approval else None
    if approval is None or session is None:
        raise ApiRefusal("not_found", f"there is no approval {wanted[:80]!r}")
    if approval.status != "pending":
        raise ApiRefusal("busy", "this approval waits no longer: it was answered, or its run has ended")
    answer = Answer(body.decision, body.reason, body.arguments, body.rule)
    try:
        settled = await approvals.answer(wanted, answer, by=call.identity.user)
    except UsageError as error:
        now = await approvals.approval(wanted)
        if now is None or now.status != "pending":  # somebody else was quicker
            raise ApiRefusal("busy", str(error)) from None
        raise
    return _answer(replace(settled, status="answered"), session)


async def _own_session(call: Call[msgspec.Struct, Whose], approval: Approval) -> SessionRow | None:
    """The session that asks, if it is the user's."""
    session = await call.gateway.sessions.session(approval.root_session_id)
    return session if session is not None and session.user == call.user else None


def _answer(approval: Approval, session: SessionRow) -> ApprovalAnswer:
    return ApprovalAnswer(
        approval=approval.approval_id,
        session=session.name,
        run=approval.run_id,
        root=approval.root_id,
        agent=approval.agent,
        path=approval.path,
        tool=approval.tool,
        arguments=approval.arguments,
        why=approval.why,
        rule=approval.rule,
        asked_at=approval.asked_at,
        status=approval.status,
    )


APPROVALS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/approvals",
        list_approvals,
        "approvals",
        "What waits for a person, the oldest first",
        tuple[ApprovalAnswer, ...],
        query=Whose,
        scope="approve",
    ),
    ApiRoute(
        "POST",
        "/approvals/{approval}",
        decide_approval,
        "approvals",
        "Answer an approval",
        ApprovalAnswer,
        body=DecideBody,
        query=Whose,
        scope="approve",
        refusals=(409,),
        details="Exactly that call then runs, once, or does not. 409: it was answered before, or its run has ended.",
    ),
)
