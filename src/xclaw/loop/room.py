"""Making room: when a conversation grows too long for its model, the older part becomes a summary."""

import asyncio
from dataclasses import dataclass

from xclaw.contracts.errors import AllModelsFailed, ContextTooLong, ModelError
from xclaw.contracts.events import Compacted, Warned
from xclaw.contracts.models import Attempt
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Spend, Usage, spend_of_call
from xclaw.loop.compaction import (
    CompactionPlan,
    build_summary,
    plan_compaction,
    summary_request,
)
from xclaw.loop.context import request_tokens
from xclaw.loop.parts import Parts
from xclaw.loop.sizes import message_tokens
from xclaw.loop.streaming import attempt_failed, cut_off

FILL = 0.8
"""The part of a window that a request may fill before it is compacted."""
KEEP = 0.3
"""The part of a window that stays word for word."""
MAX_COMPACTIONS = 2
"""For one message of the user; a conversation that does not shrink is not shortened for ever."""


class _SilentSink:
    """A summary is for the runtime, not for the channel."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def on_text(self, text: str) -> None:
        pass

    def on_attempt_failed(self, attempt: Attempt) -> None:
        """Charged and journaled; nothing is taken back, since nothing was shown."""
        attempt_failed(self._parts, attempt, f"no summary: {attempt.error}", "")


async def make_room(parts: Parts, *, force: bool = False) -> None:
    """Compact if the next request would not fit; `force` when the provider said that it does not.

    Raises `ContextTooLong` when nothing helps, `LimitReached` when the budget forbids the summary.
    """
    window = parts.model.profile.context_tokens
    budget = int(window * FILL) - (request_tokens(parts) - parts.state.tokens)
    if not force and parts.state.tokens <= budget:
        return
    view = parts.state.view()
    if force:
        budget = min(budget, sum(message_tokens(m) for m in view) // 2)
    plan = plan_compaction(view, budget, min(int(window * KEEP), max(budget, 0)))
    if plan is None or parts.state.compactions >= MAX_COMPACTIONS:
        if force:
            raise ContextTooLong(
                f"the conversation does not fit the model's window of {window} tokens, "
                "and shortening it did not help"
            )
        return
    await _compact(parts, plan, window)


async def _compact(parts: Parts, plan: CompactionPlan, window: int) -> None:
    written = await _summarise(parts, plan, window)
    summary = build_summary(
        plan.pinned,
        list(parts.state.artifacts),
        written.text,
        dropped=plan.dropped,
        limit_tokens=max(200, min(4_000, window // 4)),
    )
    state = parts.state
    already = state.kept_from - 1 if state.kept_from else 0
    after = plan.tokens_before - plan.tokens_dropped + estimate_tokens(summary)
    parts.log.record(
        Compacted(
            already + plan.kept_from,
            summary,
            plan.tokens_before,
            after,
            written.usage,
            written.cost_usd,
        )
    )


@dataclass(frozen=True, slots=True)
class _Written:
    text: str
    usage: Usage = Usage()
    cost_usd: float | None = 0.0


async def _summarise(parts: Parts, plan: CompactionPlan, window: int) -> _Written:
    """The model's summary; empty when it fails, for the mechanical record stands beside it anyway."""
    request = summary_request(
        plan, window_tokens=window, agent=parts.agent.name, deadline=parts.bounds.deadline
    )
    tokens = sum(message_tokens(message) for message in request.messages)
    reservation = parts.ledger.reserve(tokens, parts.model.profile)
    spend = Spend()
    try:
        reply = await parts.model.reply(request, _SilentSink(parts))
        spend = spend_of_call(reply.usage, reply.cost_usd)
        return _Written(reply.message.text, reply.usage, reply.cost_usd)
    except (ModelError, AllModelsFailed) as failure:
        parts.log.record(Warned("compaction", f"no summary: {failure}"))
        return _Written("")
    except asyncio.CancelledError:
        spend = cut_off(parts, "", tokens)
        raise
    finally:
        parts.ledger.settle(reservation, spend)
