"""What happens to a reply while it streams: shown at once, held back, or taken back."""

import re

from xclaw.contracts.events import AttemptFailed
from xclaw.contracts.models import Attempt
from xclaw.contracts.tokens import estimate_tokens
from xclaw.contracts.usage import Spend, Usage, spend_of_call
from xclaw.loop.parts import Parts

_OPENS = re.compile(r"[ \t]*(?:[{\[]|```|~~~)")
_OPENS_LATER = re.compile(r"\n[ \t]*(?:[{\[]|```|~~~)")
_MAY_OPEN = re.compile(r"[ \t]{0,100}(?:`{0,2}|~{0,2})\Z")
_OPENS_NATIVE = re.compile(r"[ \t]*[{\[]")
_MAY_OPEN_NATIVE = re.compile(r"[ \t]{0,100}\Z")
"""Where tool calls have a channel of their own, only a reply that is JSON from its start is suspicious."""


class Gate:
    """Lets text through until it may be the beginning of an action; takes time linear in the text."""

    def __init__(self, *, anywhere: bool) -> None:
        self.passed = False
        """Some text has been let through."""
        self._anywhere = anywhere
        self._opens = _OPENS if anywhere else _OPENS_NATIVE
        self._may_open = _MAY_OPEN if anywhere else _MAY_OPEN_NATIVE
        self._held: list[str] = []
        self._holding = False
        self._at_start: bool = True
        """`_line` is all there is of the current line."""
        self._line = ""

    def feed(self, text: str) -> str:
        """What may be shown now."""
        self._held.append(text)
        if self._holding:
            return ""
        if self.passed and not self._anywhere:
            return self.rest()
        line = self._line + text
        found = (self._opens.match(line) if self._at_start else None) or self._later(line)
        if found is not None:
            self._holding = True
            return self._let_through(line, found.start())
        if self._at_start or "\n" in line:
            tail = line[line.rfind("\n") + 1 :]
            self._at_start = self._may_open.match(tail) is not None
            self._line = tail if self._at_start else ""
        return self._let_through(line, len(line) - len(self._line))

    def _later(self, line: str) -> re.Match[str] | None:
        return _OPENS_LATER.search(line) if self._anywhere else None

    def rest(self) -> str:
        """Everything that was held."""
        held, self._held = "".join(self._held), []
        return held

    def _let_through(self, line: str, end: int) -> str:
        """The held text up to `end` of `line`, its last part; blank text before any words waits with them."""
        if not self.passed and not line[:end].strip():
            return ""
        held = self.rest()
        cut = len(held) - (len(line) - end)
        self._held = [held[cut:]] if cut < len(held) else []
        self.passed = self.passed or cut > 0
        return held[:cut]


class TurnSink:
    """The `ReplySink` of one turn. Text that may be an action is held until `release`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._chunks: list[str] = []
        self._gate = Gate(anywhere=parts.dialect.holds_json)

    @property
    def text(self) -> str:
        """Everything of the current attempt so far."""
        return "".join(self._chunks)

    def on_text(self, text: str) -> None:
        self._chunks.append(text)
        self._show(self._gate.feed(text))

    def on_attempt_failed(self, attempt: Attempt) -> None:
        """Journal the failure, charge what it cost, and take back what was shown."""
        parts = self._parts
        self._chunks, self._gate = [], Gate(anywhere=parts.dialect.holds_json)
        attempt_failed(parts, attempt, attempt.error, attempt.partial)

    def release(self, answer: str | None) -> None:
        """The reply is complete: show what was held if it is an answer, drop it if it is calls."""
        if answer is not None:
            self._show(self._gate.rest() if self._gate.passed else answer)

    def _show(self, text: str) -> None:
        if text:
            self._parts.log.delta(text)


def attempt_failed(parts: Parts, attempt: Attempt, error: str, retracted: str) -> None:
    """Charge and journal what a failed attempt cost; `retracted` is the text that was shown of it."""
    parts.ledger.charge(spend_of_call(attempt.usage, attempt.cost_usd))
    parts.log.record(
        AttemptFailed(
            parts.state.turn,
            attempt.model,
            error,
            attempt.status,
            attempt.usage,
            attempt.cost_usd,
            retracted,
            attempt.next_model,
        )
    )


def cut_off(parts: Parts, text: str, input_tokens: int) -> Spend:
    """Journal a call that a cancellation ended. It was paid for too: how much is an estimate, never 0."""
    usage = Usage(input_tokens, estimate_tokens(text) if text else 0, estimated=True)
    cost = parts.model.profile.cost_usd(usage.input_tokens, usage.output_tokens)
    parts.unfinished = text
    parts.log.record(
        AttemptFailed(parts.state.turn, parts.model.name, "cancelled", None, usage, cost, text, None)
    )
    return spend_of_call(usage, cost)
