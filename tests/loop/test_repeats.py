"""Runs that go round in circles (SPEC K2, faults L03 and S16)."""

import json
from itertools import count

import pytest

from xclaw.loop.repeats import WARNING_TEXT, RepeatGuard, Verdict

MISSING = ("view_file", '{"path":"missing.txt"}', "error: no such file", False)


def verdicts(*calls: tuple[str, str, str, bool]) -> list[Verdict]:
    guard = RepeatGuard()
    return [guard.note(*call) for call in calls]


def test_the_same_failing_call_is_warned_at_the_third_and_stopped_at_the_fourth() -> None:
    """L03"""
    assert verdicts(*[MISSING] * 4) == ["ok", "ok", "warn", "stuck"]


def test_the_same_successful_call_with_the_same_result_is_stopped_too() -> None:
    """L03"""
    assert verdicts(*[("shell", '{"cmd":"echo noop"}', "noop", True)] * 4)[-1] == "stuck"


def test_key_order_and_whitespace_do_not_matter() -> None:
    """L03"""
    spellings = [
        '{"a":1,"b":{"c":2,"d":3}}',
        '{ "b": {"d":3, "c":2}, "a": 1 }',
        '{"a":1,\n"b":{"c":2,"d":3}}',
    ]
    calls = [("t", spellings[i % 3], "error", False) for i in range(4)]
    assert verdicts(*calls) == ["ok", "ok", "warn", "stuck"]
    blanks = [("list_dir", text, "a.txt", True) for text in ("", "null", "{}", " ")]
    assert verdicts(*blanks)[-1] == "stuck"


def test_different_failing_calls_are_not_stopped() -> None:
    """L03"""
    calls = [("view_file", json.dumps({"path": f"{i}.txt"}), "error: no such file", False) for i in range(50)]
    assert set(verdicts(*calls)) == {"ok"}


def test_the_same_call_with_new_results_is_progress() -> None:
    calls = [("shell", '{"cmd":"make"}', f"error in line {i}", False) for i in range(50)]
    assert set(verdicts(*calls)) == {"ok"}


def test_a_change_resets_the_count() -> None:
    other = ("list_dir", "{}", "a.txt", True)
    assert "stuck" not in verdicts(MISSING, MISSING, other, MISSING, MISSING)


@pytest.mark.parametrize("period", [2, 3])
def test_a_cycle_of_calls_is_noticed(period: int) -> None:
    """K2"""
    cycle = [("t", json.dumps({"step": i}), f"result {i}", i % 2 == 0) for i in range(period)]
    found = verdicts(*cycle * 4)
    assert "warn" in found
    assert "stuck" in found
    before = found[: found.index("stuck")]
    assert len([i for i in range(len(before) + 1) if i % period == 0]) <= 4
    assert found[: 2 * period] == ["ok"] * (2 * period)


def test_an_error_that_comes_back_after_every_fix_is_noticed() -> None:
    """K2: error, fix, error, however different the fixes are."""
    guard = RepeatGuard()
    found: list[Verdict] = []
    for attempt in range(5):
        found.append(guard.note("shell", '{"cmd":"pytest"}', f"1 failed in 0.0{attempt}s", False))
        guard.note("write_file", json.dumps({"content": attempt}), "written", True)
    assert found == ["ok", "ok", "warn", "warn", "stuck"]


def test_a_fix_that_works_clears_the_error() -> None:
    guard = RepeatGuard()
    test = ("shell", '{"cmd":"pytest"}')
    for attempt in range(20):
        assert guard.note(*test, "1 failed", False) == "ok"
        guard.note("write_file", json.dumps({"content": attempt}), "written", True)
        assert guard.note(*test, f"passed {attempt}", True) == "ok"


def test_half_calls_are_stopped_at_the_third() -> None:
    """S16: the arguments were cut off, each time at another place."""
    calls = [("deliver", '{"summary":"' + "a" * (100 + i), "error: cut off", False) for i in range(3)]
    assert verdicts(*calls) == ["ok", "warn", "stuck"]


def test_half_calls_of_different_errors_are_different() -> None:
    calls = [("deliver", '{"summary":"' + "a" * i, f"error: cut off at {i}", False) for i in range(9)]
    assert set(verdicts(*calls)) == {"ok"}


def test_replaying_the_same_calls_gives_the_same_verdicts() -> None:
    calls = [("t", json.dumps({"n": i % 3}), str(i % 2), i % 5 != 0) for i in range(200)]
    assert verdicts(*calls) == verdicts(*calls)


def test_memory_stays_bounded_over_many_huge_calls() -> None:
    guard = RepeatGuard()
    for index in count():
        guard.note("t", json.dumps({"n": index}), "x" * 10_000, False)
        if index == 2_000:
            break
    assert sum(len(str(value)) for value in vars(guard).values()) < 50_000


def test_odd_texts_are_taken() -> None:
    guard = RepeatGuard()
    for text in ("\ud800", '"\\ud800"', "[" * 10_000, "NaN", '{"a":1e999}'):
        assert guard.note(text, text, text, False) == "ok"


def test_the_warning_says_what_to_do() -> None:
    assert "another tool" in WARNING_TEXT
