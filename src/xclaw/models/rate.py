"""Limits of one provider: requests and tokens per minute, and calls at once."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from xclaw.contracts.models import Model, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.models.settings import ProviderSettings

_MINUTE_S = 60.0


class TokenBucket:
    """Refills by `per_minute` a minute and holds as much. What is taken beyond it is owed, and waited for."""

    __slots__ = ("_at", "_clock", "_level", "_per_minute")

    def __init__(self, per_minute: float, clock: Callable[[], float]) -> None:
        self._per_minute = per_minute
        self._clock = clock
        self._level = per_minute
        self._at = clock()

    def take(self, amount: float) -> float:
        """Seconds to wait until `amount`, now taken, is there. A negative amount gives back."""
        now = self._clock()
        refill = (now - self._at) / _MINUTE_S * self._per_minute
        self._level = min(self._per_minute, self._level + refill)
        self._at = now
        self._level = min(self._per_minute, self._level - amount)
        return max(0.0, -self._level / self._per_minute * _MINUTE_S)


class Slots:
    """At most `count` holders; those who wait are served in order, the orchestrator's calls first."""

    __slots__ = ("_first", "_free", "_then")

    def __init__(self, count: int) -> None:
        self._free = count
        self._first: deque[asyncio.Future[None]] = deque()
        self._then: deque[asyncio.Future[None]] = deque()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return len(self._first) + len(self._then)

    async def take(self, first: bool = False) -> None:
        if self._free > 0:
            self._free -= 1
            return
        queue = self._first if first else self._then
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                queue.remove(turn)
            else:
                self.give_back()  # its turn had come
            raise

    def give_back(self) -> None:
        for queue in (self._first, self._then):
            while queue:
                turn = queue.popleft()
                if not turn.done():
                    turn.set_result(None)
                    return
        self._free += 1


class RateLimits:
    """The limits of one provider, shared by its models."""

    def __init__(
        self,
        settings: ProviderSettings,
        *,
        clock: Callable[[], float],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        requests, tokens = settings.requests_per_minute, settings.tokens_per_minute
        self._requests = TokenBucket(requests, clock) if requests else None
        self._tokens = TokenBucket(tokens, clock) if tokens else None
        self._slots = Slots(settings.max_concurrent) if settings.max_concurrent else None
        self._sleep = sleep

    @asynccontextmanager
    async def admitted(self, tokens: int, *, first: bool = False) -> AsyncGenerator[None, None]:
        """Wait for a turn for a call of about `tokens`, and hold a place until its end.

        Cancelling the wait gives everything back. `first`: before those who wait.
        """
        if self._slots is not None:
            await self._slots.take(first)
        try:
            await self._wait(tokens)
            yield
        finally:
            if self._slots is not None:
                self._slots.give_back()

    def settle(self, tokens: int) -> None:
        """The call took this many tokens more than was said, or less if negative."""
        if self._tokens is not None:
            self._tokens.take(tokens)

    async def _wait(self, tokens: int) -> None:
        taken = [
            (bucket, amount) for bucket, amount in ((self._requests, 1), (self._tokens, tokens)) if bucket
        ]
        wait_s = max((bucket.take(amount) for bucket, amount in taken), default=0.0)
        if wait_s <= 0:
            return
        try:
            await self._sleep(wait_s)
        except BaseException:
            for bucket, amount in taken:
                bucket.take(-amount)
            raise


class LimitedModel:
    """A `Model` that waits its turn at its provider. The wait is part of `reply` and ends with it."""

    def __init__(self, model: Model, limits: RateLimits, estimate: Callable[[ModelRequest], int]) -> None:
        self._model = model
        self._limits = limits
        self._estimate = estimate

    @property
    def name(self) -> str:
        return self._model.name

    @property
    def profile(self) -> ModelProfile:
        return self._model.profile

    @property
    def inner(self) -> Model:
        """The model that does the work, to be closed by its owner."""
        return self._model

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        expected = self._estimate(request)
        async with self._limits.admitted(expected, first=request.orchestrator):
            reply = await self._model.reply(request, sink)
        self._limits.settle(reply.usage.total_tokens - expected)
        return reply
