"""A chain of models: what is retried, after what wait, and what the sink is told."""

import asyncio
from collections.abc import Callable, Sequence

import pytest
from wire_asking import REQUEST, run

from xclaw.contracts.errors import (
    AllModelsFailed,
    ContextTooLong,
    ModelError,
    ModelInterrupted,
    ModelRejected,
    ModelUnavailable,
)
from xclaw.contracts.messages import AssistantMessage
from xclaw.contracts.models import Attempt, ModelProfile, ModelReply, ModelRequest, ReplySink
from xclaw.contracts.usage import Usage
from xclaw.models.breaker import Breakers
from xclaw.models.failures import EmptyReply
from xclaw.models.fallback import FallbackModel, RetryPolicy, Timing
from xclaw.models.settings import BreakerSettings


class FakeTime:
    """A clock that only sleeping moves."""

    def __init__(self, chance: float = 0.0) -> None:
        self.now = 1000.0
        self.sleeps: list[float] = []
        self._chance = chance

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        self.now += seconds

    @property
    def timing(self) -> Timing:
        return Timing(self.sleep, lambda: self.now, lambda: self._chance)


class Planned:
    """A model that says and fails as planned, then answers for ever."""

    def __init__(self, name: str, *plan: str | ModelError, window: int = 1000) -> None:
        self._name = name
        self._plan = list(plan)
        self._profile = ModelProfile(context_tokens=window)
        self.requests: list[ModelRequest] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def profile(self) -> ModelProfile:
        return self._profile

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
        self.requests.append(request)
        step = self._plan.pop(0) if self._plan else "ok"
        if isinstance(step, ModelError):
            if step.partial:
                sink.on_text(step.partial)
            raise step
        sink.on_text(step)
        return ModelReply(AssistantMessage(step), Usage(30, 4), self._name, "stop")


class Screen:
    """Shows text as a channel does: what is retracted disappears."""

    def __init__(self) -> None:
        self.text = ""
        self.attempts: list[Attempt] = []

    def on_text(self, text: str) -> None:
        self.text += text

    def on_attempt_failed(self, attempt: Attempt) -> None:
        assert self.text.endswith(attempt.partial)
        self.text = self.text.removesuffix(attempt.partial)
        self.attempts.append(attempt)


def down(status: int | None = 503, retry_after_s: float | None = None) -> ModelUnavailable:
    return ModelUnavailable(f"HTTP {status}: down", status=status, retry_after_s=retry_after_s)


def chained(
    models: Sequence[Planned], time: FakeTime, retries: int = 2, breakers: Breakers | None = None
) -> FallbackModel:
    policy = RetryPolicy(retries=retries, backoff_s=0.5, max_wait_s=60.0)
    return FallbackModel(models, policy=policy, breakers=breakers, timing=time.timing)


def test_a_broken_stream_is_taken_back_and_tried_again_without_a_second_model() -> None:
    """V08, S14."""

    async def main() -> None:
        model = Planned("a", ModelInterrupted("cut", partial="par"), "partial done")
        screen = Screen()
        reply = await chained([model], FakeTime()).reply(REQUEST, screen)
        assert screen.text == reply.message.text == "partial done"
        assert len(model.requests) == 2
        assert [attempt.partial for attempt in screen.attempts] == ["par"]

    run(main)


def test_the_next_model_begins_afresh_with_the_same_request() -> None:
    """S14: no text of the failed model is in what the next one gets, and none stays on the screen."""

    async def main() -> None:
        first = Planned("a", ModelInterrupted("cut", partial="Hello, wor"))
        second = Planned("b", "Hello, world!")
        screen = Screen()
        reply = await chained([first, second], FakeTime(), retries=0).reply(REQUEST, screen)
        assert screen.text == "Hello, world!"
        assert reply.model == "b"
        assert second.requests == [REQUEST]
        assert [(attempt.model, attempt.next_model) for attempt in screen.attempts] == [("a", "b")]

    run(main)


@pytest.mark.parametrize(
    ("asked_s", "expected_s"), [(2.0, 2.0), (2.5, 2.5), (0.0, 0.0), (999_999.0, 60.0), (None, 0.25)]
)
@pytest.mark.parametrize("chance", [0.0, 0.999])
def test_a_retry_waits_as_long_as_the_provider_asks(
    asked_s: float | None, expected_s: float, chance: float
) -> None:
    """V01, V02."""

    async def main() -> None:
        time = FakeTime(chance)
        await chained([Planned("a", down(429, asked_s), "ok")], time).reply(REQUEST, Screen())
        assert sum(time.sleeps) >= expected_s
        assert sum(time.sleeps) <= min(expected_s + 1, 60.0)

    run(main)


def test_waits_without_a_wish_grow() -> None:
    async def main() -> None:
        time = FakeTime()
        await chained([Planned("a", down(), down(), down(), "ok")], time, retries=3).reply(REQUEST, Screen())
        assert time.sleeps == [0.25, 0.5, 1.0]

    run(main)


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    """V02."""

    async def main() -> None:
        time = FakeTime()
        request = ModelRequest("", REQUEST.messages, deadline=time.now + 10)
        only = Planned("a", down(429, 30.0))
        with pytest.raises(AllModelsFailed, match="HTTP 429"):
            await chained([only], time).reply(request, Screen())
        assert time.sleeps == []
        first, second = Planned("a", down(429, 30.0)), Planned("b", "ok")
        reply = await chained([first, second], time).reply(request, Screen())
        assert (reply.model, time.sleeps) == ("b", [])

    run(main)


def test_after_the_last_try_the_providers_own_words_remain() -> None:
    """V02."""

    async def main() -> None:
        screen = Screen()
        errors = [ModelUnavailable("HTTP 429: quota for key X", status=429) for _ in range(3)]
        chain = chained([Planned("a", *errors), Planned("b", ModelRejected("HTTP 404: no b"))], FakeTime())
        with pytest.raises(AllModelsFailed, match=r"(?s)429: quota for key X.*404: no b") as caught:
            await chain.reply(REQUEST, screen)
        assert [type(error) for error in caught.value.failures] == [ModelUnavailable, ModelRejected]
        assert [attempt.next_model for attempt in screen.attempts] == ["a", "a", "b", None]

    run(main)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_a_refusal_moves_on_at_once_and_is_no_outage(status: int) -> None:
    """V04."""

    async def main() -> None:
        time = FakeTime()
        breakers = Breakers(BreakerSettings(failures=1), lambda: time.now)
        first = Planned("a", ModelRejected("no", status=status))
        reply = await chained([first, Planned("b", "ok")], time, breakers=breakers).reply(REQUEST, Screen())
        assert reply.model == "b"
        assert len(first.requests) == 1
        assert breakers.of("a").admits()

    run(main)


def test_a_request_that_is_too_long_goes_back_unless_a_later_window_is_larger() -> None:
    """V04."""

    async def main() -> None:
        def long() -> ContextTooLong:
            return ContextTooLong("too long", status=400)

        same = Planned("b", window=1000)
        screen = Screen()
        with pytest.raises(ContextTooLong):
            await chained([Planned("a", long()), same], FakeTime()).reply(REQUEST, screen)
        assert same.requests == []
        assert [attempt.next_model for attempt in screen.attempts] == [None]
        chain = chained([Planned("a", long()), same, Planned("c", "ok", window=5000)], FakeTime())
        assert (await chain.reply(REQUEST, Screen())).model == "c"
        assert same.requests == []

    run(main)


def test_an_outage_counts_once_for_each_attempt_and_an_answer_forgets_them() -> None:
    """S13: the breaker counts the failure, and only of the model that failed."""

    async def main() -> None:
        time = FakeTime()
        breakers = Breakers(BreakerSettings(), lambda: time.now)
        chain = chained([Planned("a", down()), Planned("b", "ok")], time, 0, breakers)
        await chain.reply(REQUEST, Screen())
        assert (breakers.of("a").failures, breakers.of("b").failures) == (1, 0)
        await chain.reply(REQUEST, Screen())
        assert breakers.of("a").failures == 0

    run(main)


@pytest.mark.parametrize(
    "error", [down(429), EmptyReply("empty"), ContextTooLong("long"), ModelRejected("no", status=400)]
)
def test_what_is_no_outage_does_not_open_the_breaker(error: ModelError) -> None:
    """V04, S02."""

    async def main() -> None:
        time = FakeTime()
        breakers = Breakers(BreakerSettings(failures=1), lambda: time.now)
        with pytest.raises((AllModelsFailed, ContextTooLong)):
            await chained([Planned("a", error)], time, 0, breakers).reply(REQUEST, Screen())
        assert breakers.of("a").admits()

    run(main)


def test_a_model_that_keeps_failing_is_passed_over_for_a_while() -> None:
    """K1."""

    async def main() -> None:
        time = FakeTime()
        breakers = Breakers(BreakerSettings(failures=2, open_s=20), lambda: time.now)
        first, second = Planned("a", down(), down()), Planned("b")
        chain = chained([first, second], time, 1, breakers)
        await chain.reply(REQUEST, Screen())
        assert (await chain.reply(REQUEST, Screen())).model == "b"
        assert len(first.requests) == 2
        time.now += 21
        assert (await chain.reply(REQUEST, Screen())).model == "a"

    run(main)


def test_when_every_breaker_is_open_the_one_closest_to_closing_is_tried() -> None:
    async def main() -> None:
        time = FakeTime()
        breakers = Breakers(BreakerSettings(failures=1, open_s=20), lambda: time.now)
        first, second = Planned("a", down()), Planned("b", down())
        chain = chained([first, second], time, 0, breakers)
        with pytest.raises(AllModelsFailed):
            await chain.reply(REQUEST, Screen())
        time.now += 5
        breakers.of("b").begin()
        breakers.of("b").failed()
        assert (await chain.reply(REQUEST, Screen())).model == "a"

    run(main)


def test_usage_and_cost_of_failed_attempts_are_told() -> None:
    """U03: 30/0 of the one that failed, 30/4 of the one that answered; unknown prices are None."""

    async def main() -> None:
        def price(model: str, usage: Usage) -> float | None:
            return None if model == "b" else usage.total_tokens / 100

        error = ModelInterrupted("cut", usage=Usage(30, 0))
        costly = FallbackModel(
            [
                Planned("a", error, ModelRejected("no")),
                Planned("b", ModelInterrupted("cut", usage=Usage(5, 0))),
            ],
            policy=RetryPolicy(retries=1),
            price=price,
            timing=FakeTime().timing,
        )
        screen = Screen()
        reply = await costly.reply(REQUEST, screen)
        assert reply.usage == Usage(30, 4)
        told = [(attempt.model, attempt.usage.input_tokens, attempt.cost_usd) for attempt in screen.attempts]
        assert told == [("a", 30, 0.3), ("a", 0, 0.0), ("b", 5, None)]

    run(main)


@pytest.mark.parametrize("where", ["attempt", "wait"])
def test_cancelling_ends_the_attempt_or_the_wait(where: str) -> None:
    """C02: and what is half-open is let go."""

    async def main() -> None:
        reached = asyncio.Event()

        async def forever(_seconds: float = 0) -> None:
            reached.set()
            await asyncio.get_running_loop().create_future()

        class Stuck(Planned):
            async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply:
                await forever()
                return await super().reply(request, sink)

        kinds: dict[str, Callable[[], Planned]] = {
            "attempt": lambda: Stuck("a"),
            "wait": lambda: Planned("a", down()),
        }
        chain = FallbackModel([kinds[where]()], timing=Timing(sleep=forever))
        call = asyncio.create_task(chain.reply(REQUEST, Screen()))
        await reached.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call

    run(main)
