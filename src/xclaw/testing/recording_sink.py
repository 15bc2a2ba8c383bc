"""A `ReplySink` that keeps what it is told."""

from collections.abc import Callable

from xclaw.contracts.models import Attempt


class RecordingSink:
    """Keeps deltas and failed attempts; `on_first_text` is called once, at the first delta."""

    def __init__(self, on_first_text: Callable[[], None] | None = None) -> None:
        self.deltas: list[str] = []
        self.attempts: list[Attempt] = []
        self._on_first_text = on_first_text

    @property
    def text(self) -> str:
        return "".join(self.deltas)

    def on_text(self, text: str) -> None:
        self.deltas.append(text)
        if len(self.deltas) == 1 and self._on_first_text is not None:
            self._on_first_text()

    def on_attempt_failed(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
