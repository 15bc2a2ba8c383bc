"""A chain of models that answers as one: retries, then the next model.

Above: loop, which journals what the sink is told. Below: single models, which never retry. A failed
attempt is reported before the next begins, so that its text can be taken back; the next begins afresh,
never from what the failed one said.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from xclaw.contracts.errors import (
    AllModelsFailed,
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelUnavailable,
    UsageError,
)
from xclaw.contracts.models import Attempt, Model, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.models.breaker import Breakers, is_outage
from xclaw.models.settings import BreakerSettings

_SPREAD_S = 0.25
"""Added at random to a wait that the provider asked for: agents that were turned away together must
not come back together."""


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How often and after what wait one model is tried again."""

    retries: int = 2
    backoff_s: float = 0.5
    max_wait_s: float = 60.0

    def wait_s(self, error: ModelError, retry: int, spread: float) -> float:
        """Before retry number `retry` (from 0); `spread` is in [0, 1)."""
        asked = error.retry_after_s if isinstance(error, ModelUnavailable) else None
        if asked is not None:
            return min(asked + _SPREAD_S * spread, self.max_wait_s)
        backoff_s = self.backoff_s * 2 ** min(retry, 30)
        return min(backoff_s * (0.5 + 0.5 * spread), self.max_wait_s)


@dataclass(frozen=True, slots=True)
class Timing:
    """Time and chance, so that tests can own them."""

    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    clock: Callable[[], float] = time.monotonic
    """On the scale of `ModelRequest.deadline`: asyncio's own clock is `time.monotonic`."""
    chance: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class _Step:
    index: int
    retry: int
    wait_s: float


def _no_price(_model: str, _usage: Usage) -> float | None:
    return None


_DEFAULT_POLICY = RetryPolicy()
_DEFAULT_TIMING = Timing()


class FallbackModel:
    """A `Model` made of models, tried in order.

    An outage or a broken stream is tried again on the same model, then the next one's turn comes; a
    refusal moves on at once. `reply` raises `AllModelsFailed` with the last error of each, or
    `ContextTooLong` when no later model has a larger window. A model whose breaker is open is passed
    over, unless all are: then the one closest to closing is tried rather than none. Cancelling it ends
    the attempt or the wait. The models are shared and not owned.
    """

    def __init__(
        self,
        models: Sequence[Model],
        *,
        policy: RetryPolicy = _DEFAULT_POLICY,
        breakers: Breakers | None = None,
        price: Callable[[str, Usage], float | None] = _no_price,
        timing: Timing = _DEFAULT_TIMING,
    ) -> None:
        if not models:
            raise UsageError("a model chain must name at least one model")
        self._models = tuple(models)
        self._policy = policy
        self._breakers = breakers or Breakers(BreakerSettings(), timing.clock)
        self._price = price
        self._timing = timing

    @property
    def name(self) -> str:
        return self._models[0].name

    @property
    def profile(self) -> ModelProfile:
        return self._models[0].profile

    def __repr__(self) -> str:
        return f"FallbackModel({[model.name for model in self._models]})"

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        models = self._admitted()
        failures: dict[int, ModelError] = {}
        step: _Step | None = _Step(0, 0, 0.0)
        while step is not None:
            model = models[step.index]
            try:
                return await self._attempt(model, request, sink)
            except ModelError as error:
                failures[step.index] = error
                step = self._next(models, step, error, request.deadline)
                sink.on_attempt_failed(self._told(model, error, models, step))
                if step is None and isinstance(error, ContextTooLong):
                    raise
            if step is not None and step.wait_s > 0:
                await self._timing.sleep(step.wait_s)
        raise self._all_failed(models, failures)

    async def _attempt(self, model: Model, request: ModelRequest, sink: ReplySink) -> ModelReply:
        breaker = self._breakers.of(model.name)
        breaker.begin()
        try:
            reply = await model.reply(request, sink)
        except ModelError as error:
            if is_outage(error):
                breaker.failed()
            else:
                breaker.answered()
            raise
        except BaseException:
            breaker.abandoned()
            raise
        breaker.answered()
        return reply

    def _admitted(self) -> list[Model]:
        admitted = [model for model in self._models if self._breakers.of(model.name).admits()]
        if admitted:
            return admitted
        return [min(self._models, key=lambda model: self._breakers.of(model.name).admits_in_s())]

    def _next(
        self, models: list[Model], step: _Step, error: ModelError, deadline: float | None
    ) -> _Step | None:
        left_s = None if deadline is None else deadline - self._timing.clock()
        if left_s is not None and left_s <= 0:
            return None
        retry = self._retry(models, step, error)
        if retry is not None and (left_s is None or retry.wait_s < left_s):
            return retry
        later = range(step.index + 1, len(models))
        if isinstance(error, ContextTooLong):
            window = models[step.index].profile.context_tokens
            later = [index for index in later if models[index].profile.context_tokens > window]
        return next((_Step(index, 0, 0.0) for index in later), None)

    def _retry(self, models: list[Model], step: _Step, error: ModelError) -> _Step | None:
        if step.retry >= self._policy.retries or not isinstance(error, ModelUnavailable | ModelInterrupted):
            return None
        is_last = step.index == len(models) - 1
        if not is_last and not self._breakers.of(models[step.index].name).admits():
            return None
        wait_s = self._policy.wait_s(error, step.retry, self._timing.chance())
        return _Step(step.index, step.retry + 1, wait_s)

    def _told(self, model: Model, error: ModelError, models: list[Model], step: _Step | None) -> Attempt:
        usage = error.usage or Usage()
        return Attempt(
            model=model.name,
            error=str(error),
            status=error.status,
            usage=usage,
            cost_usd=self._price(model.name, usage) if usage.total_tokens else 0.0,
            partial=error.partial,
            next_model=models[step.index].name if step is not None else None,
            wait_s=step.wait_s if step is not None else 0.0,
        )

    def _all_failed(self, models: list[Model], failures: dict[int, ModelError]) -> AllModelsFailed:
        lines = [_labelled(models[index].name, error) for index, error in failures.items()]
        tried = {model.name for model in models}
        for model in self._models:
            if model.name not in tried:
                wait_s = self._breakers.of(model.name).admits_in_s()
                lines.append(
                    f"{model.name}: not tried, it kept failing; its breaker closes in {wait_s:.0f} s"
                )
        errors = tuple(failures.values())
        if len(lines) == 1:
            return AllModelsFailed(f"the model failed: {lines[0]}", errors)
        return AllModelsFailed("every model of the chain failed:\n" + "\n".join(lines), errors)


def _labelled(name: str, error: ModelError) -> str:
    text = str(error)
    return text if text.startswith(name) else f"{name}: {text}"
