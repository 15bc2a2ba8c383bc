"""Notices a run that goes round in circles (SPEC K2)."""

import hashlib
import re
from collections import OrderedDict
from typing import Literal

from xclaw.loop.json_blocks import decode_json, encode_json

Verdict = Literal["ok", "warn", "stuck"]

WARNING_TEXT = (
    "You have made the same tool call with the same result several times. It will not come out "
    "differently. Do something else: change the arguments, use another tool, or end with what you have "
    "and say what is missing. Repeating it once more ends this run."
)

LONGEST_CYCLE = 3
WARN_AT = 3
STUCK_AT = 4
"""How often the same call with the same result, alone or as part of a cycle, may come."""
STUCK_AT_HALF_CALLS = 3
"""The same for calls whose arguments are no JSON: repeating those is never worth a try."""
STUCK_AT_RECURRING_FAILURE = 5
"""The same for one failure that comes back however different the calls in between are."""
MAX_FAILURES = 64

_VOLATILE = re.compile(
    r"\b\d+(?:\.\d+)?\s?(?:ms|s|sec|seconds?|minutes?)\b|\b0x[0-9a-fA-F]+\b|\d\d:\d\d:\d\d"
)
_COMPARED_CHARS = 50_000

_Digest = bytes


class RepeatGuard:
    """Fed with every finished call of a run in order; remembers digests only, and few of them.

    The same calls give the same verdicts, so a replay rebuilds it.
    """

    def __init__(self) -> None:
        self._recent: list[_Digest] = []
        self._repeated = [0] * (LONGEST_CYCLE + 1)
        """By period: how many of the last calls equal the one a period before."""
        self._failures: OrderedDict[_Digest, tuple[_Digest, int]] = OrderedDict()
        """By call: its last failure, and how often that came."""

    def note(self, name: str, arguments: str, content: str, ok: bool) -> Verdict:
        """What to do after this call: go on, warn the model, or end the run."""
        canonical, is_half = _canonical(arguments)
        call = _digest(name, canonical)
        outcome = _digest(str(ok), content if ok else _without_volatile(content))
        cycles = self._note_cycle(call + outcome)
        failures = self._note_failure(call, outcome, ok)
        stuck_at = STUCK_AT_HALF_CALLS if is_half and not ok else STUCK_AT
        if cycles >= stuck_at or failures >= STUCK_AT_RECURRING_FAILURE:
            return "stuck"
        if cycles >= stuck_at - 1 or failures >= WARN_AT:
            return "warn"
        return "ok"

    def _note_cycle(self, entry: _Digest) -> int:
        """How often the current cycle, of whatever period, has come round."""
        rounds = 1
        for period in range(1, LONGEST_CYCLE + 1):
            if len(self._recent) >= period and self._recent[-period] == entry:
                self._repeated[period] += 1
                rounds = max(rounds, -(-(self._repeated[period] + period) // period))
            else:
                self._repeated[period] = 0
        self._recent = [*self._recent[-(LONGEST_CYCLE - 1) :], entry]
        return rounds

    def _note_failure(self, call: _Digest, outcome: _Digest, ok: bool) -> int:
        last, count = self._failures.pop(call, (b"", 0))
        if ok:
            return 0
        count = count + 1 if last == outcome else 1
        self._failures[call] = (outcome, count)
        if len(self._failures) > MAX_FAILURES:
            self._failures.popitem(last=False)
        return count


def _canonical(arguments: str) -> tuple[str, bool]:
    """The arguments without what does not matter, and whether they are no JSON at all."""
    if not arguments.strip():
        return "{}", False
    try:
        value = decode_json(arguments)
    except ValueError:
        return "unreadable", True
    return encode_json({} if value is None else value, sort_keys=True), False


def _without_volatile(content: str) -> str:
    """A failure's text without durations, clock times and addresses: the rest tells failures apart."""
    return _VOLATILE.sub("", content[:_COMPARED_CHARS])


def _digest(first: str, second: str) -> _Digest:
    data = f"{len(first)}:{first}{second}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(data, digest_size=16).digest()
