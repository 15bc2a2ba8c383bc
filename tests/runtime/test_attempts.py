"""The breaker of (worker, task): SPEC K1, fault L04."""

from xclaw.contracts.results import Outcome
from xclaw.runtime.attempts import AttemptCounter


def fail(counter: AttemptCounter, task: str, *outcomes: Outcome) -> None:
    for outcome in outcomes:
        counter.note("coder", task, outcome, succeeded=False)


def test_three_failures_of_any_kind_close_the_road() -> None:
    counter = AttemptCounter()
    fail(counter, "build it", "timeout", "error")
    assert not counter.is_open("coder", "build it")
    fail(counter, "build it", "stuck")
    assert counter.is_open("coder", "build it")


def test_white_space_and_case_do_not_make_a_task_new() -> None:
    counter = AttemptCounter()
    fail(counter, "Build  it\n", "error", "error", "error")
    assert counter.is_open("coder", " build it")


def test_another_task_or_another_worker_is_not_affected() -> None:
    counter = AttemptCounter()
    fail(counter, "a", "error", "error", "error")
    assert not counter.is_open("coder", "b")
    assert not counter.is_open("writer", "a")


def test_a_success_forgets_the_failures() -> None:
    counter = AttemptCounter()
    fail(counter, "a", "error", "error")
    counter.note("coder", "a", "success", succeeded=True)
    fail(counter, "a", "error", "error")
    assert not counter.is_open("coder", "a")


def test_a_cancelled_child_is_no_failure() -> None:
    counter = AttemptCounter()
    fail(counter, "a", "cancelled", "cancelled", "interrupted", "cancelled")
    assert not counter.is_open("coder", "a")
