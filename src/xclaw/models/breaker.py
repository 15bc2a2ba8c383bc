"""Circuit breakers: a model whose endpoint is down is left alone for a while."""

import math
from collections.abc import Callable

from xclaw.contracts.errors import ModelError, ModelInterrupted, ModelUnavailable
from xclaw.models.failures import EmptyReply
from xclaw.models.settings import BreakerSettings


class Breaker:
    """Of one model at one endpoint, shared by all runs.

    Closed, it admits calls. `failures` outages in a row open it. After a pause it lets one probe
    through (half-open), which closes it or doubles the pause. Only outages count: an endpoint that
    refuses a request is up.
    """

    __slots__ = ("_clock", "_failures", "_open_until", "_pause_s", "_probing", "_settings")

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._failures = 0
        self._open_until: float | None = None
        self._pause_s = settings.open_s
        self._probing = False

    @property
    def failures(self) -> int:
        """Outages in a row."""
        return self._failures

    def admits(self) -> bool:
        """Whether a call would be let through now."""
        if self._open_until is None:
            return True
        return not self._probing and self._clock() >= self._open_until

    def admits_in_s(self) -> float:
        """Seconds until a probe is let through; infinite while one is under way."""
        if self._open_until is None:
            return 0.0
        return math.inf if self._probing else max(0.0, self._open_until - self._clock())

    def begin(self) -> None:
        """A call starts, admitted or not: it must end in `answered`, `failed` or `abandoned`."""
        self._probing = self._open_until is not None

    def answered(self) -> None:
        """The endpoint is up, whatever it said."""
        self._failures = 0
        self._open_until = None
        self._pause_s = self._settings.open_s
        self._probing = False

    def failed(self) -> None:
        """An outage. Calls that were under way when it opened do not lengthen the pause."""
        self._failures += 1
        if self._open_until is None:
            if self._failures >= self._settings.failures:
                self._open_until = self._clock() + self._pause_s
        elif self._probing:
            self._pause_s = min(self._pause_s * 2, self._settings.max_open_s)
            self._open_until = self._clock() + self._pause_s
        self._probing = False

    def abandoned(self) -> None:
        """The call was cancelled: it showed nothing."""
        self._probing = False


class Breakers:
    """One breaker per model name."""

    def __init__(self, settings: BreakerSettings, clock: Callable[[], float]) -> None:
        self._settings = settings
        self._clock = clock
        self._breakers: dict[str, Breaker] = {}

    def of(self, model: str) -> Breaker:
        breaker = self._breakers.get(model)
        if breaker is None:
            breaker = self._breakers[model] = Breaker(self._settings, self._clock)
        return breaker


def is_outage(error: ModelError) -> bool:
    """Whether an error is a sign that the endpoint is down. Rate limits and refusals are not."""
    if isinstance(error, ModelUnavailable):
        return error.status is None or error.status >= 500
    return isinstance(error, ModelInterrupted) and not isinstance(error, EmptyReply)
