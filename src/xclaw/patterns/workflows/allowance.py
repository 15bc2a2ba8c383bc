"""Holds a workflow to its quote. Each agent gets an equal share of what is left, so that all together
cannot use more, also when they run at once; what one does not use is there for those after it."""

from dataclasses import dataclass

from xclaw.contracts.agents import Limits
from xclaw.contracts.errors import SpawnRefused
from xclaw.contracts.results import Result
from xclaw.patterns.workflows.quote import Quote


@dataclass(slots=True)
class Allowance:
    quote: Quote
    started: int = 0
    _usd: float = 0.0
    _tokens: int = 0
    """Spent, or held by agents that run."""

    def take(self, agent: str, allowed: frozenset[str] | None) -> Limits:
        """One more agent may start, within these limits. Raises `SpawnRefused` for one that was not
        quoted."""
        quote = self.quote
        if allowed is not None and agent not in allowed:
            raise SpawnRefused(f"{agent} was not quoted; quoted were {', '.join(sorted(allowed)) or 'none'}")
        if self.started >= quote.max_agents:
            raise SpawnRefused(f"{quote.max_agents} agents were quoted, and as many were started")
        remaining = quote.max_agents - self.started
        usd = tokens = None
        if quote.max_usd is not None:
            usd = (quote.max_usd - self._usd) / remaining
        if quote.max_tokens is not None:
            tokens = (quote.max_tokens - self._tokens) // remaining
        if (usd is not None and usd <= 0) or (tokens is not None and tokens <= 0):
            raise SpawnRefused("what was quoted has been spent")
        self.started += 1
        self._usd += usd or 0.0
        self._tokens += tokens or 0
        return Limits(max_tokens=tokens, max_usd=usd)

    def give_back(self, limits: Limits, result: Result | None) -> None:
        """It has ended, and used what its result says; at an unknown price, all that it was given."""
        if limits.max_usd is not None:
            cost = result.spend.cost_usd if result else 0.0
            self._usd += (limits.max_usd if cost is None else cost) - limits.max_usd
        if limits.max_tokens is not None:
            self._tokens += (result.spend.usage.total_tokens if result else 0) - limits.max_tokens
