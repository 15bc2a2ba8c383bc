"""What happens to a reply while it streams: shown at once, held back, or taken back."""

import re

from xclaw.contracts.events import AttemptFailed
from xclaw.contracts.models import Attempt
from xclaw.contracts.usage import spend_of_call
from xclaw.loop.parts import Parts

_MAY_BE_ACTION = re.compile(r"(?:\A|\n)[ \t]*(?:[{\[]|```|~~~)")


class TurnSink:
    """The `ReplySink` of one turn. Text that may be an action is held until `release`."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._holds = parts.dialect.holds_json
        self._chunks: list[str] = []
        self._held = ""
        self._showed = False

    @property
    def text(self) -> str:
        """Everything of the current attempt so far."""
        return "".join(self._chunks)

    def on_text(self, text: str) -> None:
        self._chunks.append(text)
        if not self._holds:
            self._parts.log.delta(text)
            return
        self._held += text
        found = _MAY_BE_ACTION.search(self._held)
        if found is None and self._held.strip():
            self._show(self._held)
            self._held = ""
        elif found is not None and found.start() > 0:
            self._show(self._held[: found.start()])
            self._held = self._held[found.start() :]

    def on_attempt_failed(self, attempt: Attempt) -> None:
        """Journal the failure, charge what it cost, and take back what was shown."""
        parts = self._parts
        self._chunks, self._held, self._showed = [], "", False
        parts.ledger.charge(spend_of_call(attempt.usage, attempt.cost_usd))
        parts.log.record(
            AttemptFailed(
                parts.state.turn,
                attempt.model,
                attempt.error,
                attempt.status,
                attempt.usage,
                attempt.cost_usd,
                attempt.partial,
                attempt.next_model,
            )
        )

    def release(self, answer: str | None) -> None:
        """The reply is complete: show what was held if it is an answer, drop it if it is calls."""
        if answer is None or not self._holds:
            return
        if self._showed:
            self._show(self._held)
        else:
            self._show(answer)
        self._held = ""

    def _show(self, text: str) -> None:
        if text:
            self._showed = True
            self._parts.log.delta(text)
