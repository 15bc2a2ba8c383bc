"""The circuit breaker: closed, open, half-open."""

import math

from xclaw.models.breaker import Breaker
from xclaw.models.settings import BreakerSettings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def opened() -> tuple[Breaker, Clock]:
    clock = Clock()
    breaker = Breaker(BreakerSettings(failures=3, open_s=10, max_open_s=35), clock)
    for _ in range(3):
        assert breaker.admits()
        breaker.begin()
        breaker.failed()
    return breaker, clock


def test_outages_in_a_row_open_it() -> None:
    breaker, _ = opened()
    assert not breaker.admits()
    assert breaker.admits_in_s() == 10


def test_an_answer_in_between_starts_the_count_again() -> None:
    breaker = Breaker(BreakerSettings(failures=2), Clock())
    for _ in range(5):
        breaker.failed()
        breaker.answered()
    assert breaker.admits()


def test_after_the_pause_one_probe_is_let_through() -> None:
    breaker, clock = opened()
    clock.now = 10
    assert breaker.admits()
    breaker.begin()
    assert not breaker.admits()
    assert breaker.admits_in_s() == math.inf
    breaker.answered()
    assert breaker.admits()
    assert breaker.failures == 0


def test_a_failed_probe_doubles_the_pause_up_to_a_limit() -> None:
    breaker, clock = opened()
    for pause in (20, 35, 35):
        clock.now += breaker.admits_in_s()
        breaker.begin()
        breaker.failed()
        assert breaker.admits_in_s() == pause


def test_a_cancelled_probe_lets_the_next_one_through() -> None:
    breaker, clock = opened()
    clock.now = 10
    breaker.begin()
    breaker.abandoned()
    assert breaker.admits()


def test_calls_that_were_under_way_do_not_lengthen_the_pause() -> None:
    breaker, _ = opened()
    breaker.failed()
    assert breaker.admits_in_s() == 10
