"""Decides once who a request goes to: a mention, then rules and a model in the order that was set."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal, Protocol

from xclaw.contracts.routing import Route
from xclaw.gateway.routing.mentions import find_mention
from xclaw.gateway.routing.rules import RuleBook
from xclaw.gateway.routing.verdict import Considered, judge

ORCHESTRATOR = "orchestrator"
Step = Literal["rules", "model"]


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a request goes."""

    route: Route
    text: str
    """What the agent is asked: the request without the mention."""
    considered: tuple[Considered, ...] = ()
    """Every rule, in order; empty when the rules were not asked."""


class LabelRouter(Protocol):
    """Picks one of the agents for a text.

    Never raises but when cancelled; a route to `ORCHESTRATOR` with `by` "default" means that it named nobody.
    """

    async def choose(self, text: str, agents: Mapping[str, str]) -> Route: ...


class Router:
    """Holds no conversation; any number of requests may be routed at once."""

    def __init__(
        self,
        rules: RuleBook,
        agents: Mapping[str, str],
        resolve: Callable[[str], str | None],
        order: tuple[Step, ...] = ("rules",),
        model: LabelRouter | None = None,
        *,
        front: str = ORCHESTRATOR,
    ) -> None:
        """`agents` may be routed to, name to description; `resolve` gives the name that a written one means.
        `front` answers what goes to none of them."""
        self._rules = rules
        self._agents = agents
        self._resolve = resolve
        self._order = order
        self._model = model
        self._front = front

    def named(self, written: str) -> str | None:
        """The agent that may be routed to, or the orchestrator, that `written` means; None for nobody."""
        name = self._resolve(written)
        return (
            name
            if name is not None and (name in self._agents or name in (ORCHESTRATOR, self._front))
            else None
        )

    async def route(self, text: str) -> Decision:
        """Never raises but when cancelled: a router model that fails leaves the request to the orchestrator."""
        mention = find_mention(text, self.named)
        if mention is not None and len(mention.agents) == 1:
            agent = mention.agents[0]
            return Decision(
                Route(agent, "mention", f"the request begins or ends with @{agent}"), mention.text
            )
        if mention is not None:
            names = ", ".join(f"@{name}" for name in mention.agents)
            return Decision(Route(self._front, "default", f"several agents are named: {names}"), text)
        return await self._by_content(text)

    async def _by_content(self, text: str) -> Decision:
        considered: tuple[Considered, ...] = ()
        route = Route(self._front, "default", _unasked(self._front))
        for step in self._order:
            settled = False
            if step == "rules":
                verdict = judge(text, self._rules, self._agents.__contains__)
                considered, settled = verdict.considered, verdict.settled
                said = Route(self._front, "default", verdict.reason)
                if verdict.rule is not None:
                    said = Route(verdict.rule.agent, "rule", verdict.reason, verdict.rule.name)
            elif self._model is not None:
                said = await self._model.choose(text, self._agents)
            else:
                continue
            route = _joined(route, said)
            if settled or said.by != "default":
                break
        return Decision(route, text, considered)


def _unasked(front: str) -> str:
    return "no router was asked" if front == ORCHESTRATOR else f"{front} mode"


def _joined(before: Route, said: Route) -> Route:
    """The later word on a request; what the earlier one cost and answered is kept."""
    return replace(said, spend=before.spend + said.spend, reply=said.reply or before.reply)
