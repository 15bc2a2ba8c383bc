"""The breaker of (worker, task): three failures end that road (SPEC K1)."""

import hashlib
import re

from xclaw.contracts.results import Outcome

MAX_FAILURES = 3
_SPACE = re.compile(r"\s+")
_NOT_A_FAILURE: frozenset[Outcome] = frozenset({"cancelled", "interrupted"})


class AttemptCounter:
    """Counts the failures of each (agent, task text) in one tree. A success forgets them.

    Only ended children count: an unknown agent, bad arguments or a refusal is no attempt.
    """

    def __init__(self) -> None:
        self._failures: dict[str, int] = {}

    def is_open(self, agent: str, task: str) -> bool:
        """Whether that road has ended."""
        return bool(self._failures) and self._failures.get(_key(agent, task), 0) >= MAX_FAILURES

    def note(self, agent: str, task: str, outcome: Outcome, *, succeeded: bool) -> None:
        if succeeded:
            if self._failures:
                self._failures.pop(_key(agent, task), None)
        elif outcome not in _NOT_A_FAILURE:
            key = _key(agent, task)
            self._failures[key] = self._failures.get(key, 0) + 1


def _key(agent: str, task: str) -> str:
    folded = _SPACE.sub(" ", task).strip().casefold()
    return hashlib.sha256(f"{agent}\0{folded}".encode("utf-8", "replace")).hexdigest()
