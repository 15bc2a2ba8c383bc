"""What an event cost: the one place where a trace turns events into spend (fault cases U01, U03)."""

from collections.abc import Iterable

from xclaw.contracts.events import AttemptFailed, Compacted, Entry, Event, ModelAnswered, RunStarted
from xclaw.contracts.usage import Spend, spend_of_call

NOTHING = Spend()


def spend_of_event(event: Event) -> Spend:
    """The spend that an event settles: an answer, a failed attempt, a compaction or a router that asked a
    model."""
    if isinstance(event, ModelAnswered | AttemptFailed):
        return spend_of_call(event.usage, event.cost_usd)
    if isinstance(event, Compacted) and event.usage.total_tokens:
        return spend_of_call(event.usage, event.cost_usd)
    if isinstance(event, RunStarted) and event.route is not None:
        return event.route.spend
    return NOTHING


def own_spend(entries: Iterable[Entry]) -> Spend:
    """The sum over events; give it one run's entries for its own spend, a tree's for the total."""
    return sum((spend_of_event(entry.event) for entry in entries), NOTHING)


def spend_by_model(entries: Iterable[Entry]) -> dict[str, Spend]:
    """Own spend split by the model that was asked; compactions stand under `compaction`, asking a router
    model under `router`."""
    split: dict[str, Spend] = {}
    for entry in entries:
        event = entry.event
        spend = spend_of_event(event)
        if spend != NOTHING:
            name = _name_of(event)
            split[name] = split.get(name, NOTHING) + spend
    return split


def _name_of(event: Event) -> str:
    if isinstance(event, ModelAnswered | AttemptFailed):
        return event.model
    return "router" if isinstance(event, RunStarted) else "compaction"
