"""A coordinator's phases on a terminal (SPEC H1)."""

import io

from xclaw.cli.phases import check_text
from xclaw.cli.render_live import LiveRenderer
from xclaw.contracts.agents import Limits
from xclaw.contracts.events import Address, Entry, PhaseChanged, RunStarted
from xclaw.contracts.plans import CheckRun
from xclaw.contracts.results import Result


def test_each_phase_is_printed_once_and_each_check_with_its_exit_code() -> None:
    stream = io.StringIO()
    renderer = LiveRenderer(stream)
    failed = CheckRun("pytest -q", "call_1", True, 1, "1 failed")
    events = (
        RunStarted("coordinator", "do", "user", 0, "", (), (), "native", Limits()),
        PhaseChanged("verification", 1, 3, "call1", total=2),
        PhaseChanged("verification", 1, 3, "call1", 1, 2, "1", "verifier", "failed"),
        PhaseChanged("implementation", 2, 3, "call1", verdict="failed", checks=(failed,)),
    )
    try:
        for event in events:
            renderer.receive(Entry(Address("root", "root", "", "s"), 1, 1.0, event, 1))
        renderer.finish(Result("error", "No."))
    finally:
        renderer.close()
    lines = [line.strip() for line in stream.getvalue().splitlines()]
    assert "phase verification (round 1 of 3): 2 checks" in lines
    assert "pytest -q: exit code 1" in lines
    assert "verification failed; on to implementation (round 2 of 3)" in lines


def test_a_command_that_did_not_run_or_was_stopped_says_so() -> None:
    assert check_text(CheckRun("a\x1b[31mb", "c", False, None, "")) == "ab: not permitted"
    assert check_text(CheckRun("sleep 9", "c", True, None, "")) == "sleep 9: stopped, its time was over"
