"""Coordinator mode on the command line: who answers, and how the phases are shown (SPEC H1)."""

from pathlib import Path
from typing import cast

import pytest

from behaviour.coordinated import (
    EXPLORER,
    QUESTIONS,
    call,
    checking,
    coordinator,
    delivered,
    planned,
    running,
    worker,
)
from cli.xclaw_command import Json, Xclaw

CHECK = "test -f a.py"
JOB = [
    coordinator(
        call("research", tasks=QUESTIONS),
        call("write_plan", plan=[planned("a")]),
        call("implement"),
        checking(CHECK),
        {"text": "All done."},
    ),
    EXPLORER,
    worker("coder", *delivered("a.py")),
    running(CHECK),
    worker("orchestrator", {"text": "I am the orchestrator."}),
]
RUN = ("run", "--allow-shell", "-m")


def test_the_phases_are_lines_of_text(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    done = xclaw(*RUN, xclaw.script(JOB), "--coordinator", "Rework it")
    assert done.code == 0, done.err
    lines = [line for line in done.out.splitlines() if line.startswith("[xclaw] ")]
    wanted = [
        "[xclaw] phase research: 1 worker",
        "[xclaw] phase research: 1/1, explorer question 1: success",
        "[xclaw] phase synthesis",
        "[xclaw] phase implementation (round 1 of 3): a plan of 1 task was accepted",
        "[xclaw] phase implementation (round 1 of 3): 1/1, coder a: success",
        "[xclaw] phase verification (round 1 of 3): 1 check",
        "[xclaw] phase verification (round 1 of 3): 1/1, verifier check 1: passed",
        f"[xclaw] {CHECK}: exit code 0",
        "[xclaw] verification passed; the work is over",
    ]
    assert [line for line in lines if line in wanted] == wanted
    assert done.out.rstrip().endswith("All done.")


def test_the_phases_are_events_of_the_json_stream_and_parts_of_the_trace(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    done = xclaw(*RUN, xclaw.script(JOB), "--coordinator", "-o", "stream-json", "Rework it")
    assert done.code == 0, done.err
    changes = [line for line in done.lines if line["type"] == "phase_changed"]
    parts = [(e["phase"], e["done"], e["total"], e["agent"], e["outcome"]) for e in changes if e["part"]]
    assert parts == [
        ("research", 1, 1, "explorer", "success"),
        ("implementation", 1, 1, "coder", "success"),
        ("verification", 1, 1, "verifier", "passed"),
    ]
    assert done.lines[-1]["status"] == "success"
    trace = xclaw("trace", "last")
    assert "phase verification (round 1 of 3)  1/1  passed" in trace.out
    assert f"{CHECK}: exit code 0  (call " in trace.out
    tree = cast("Json", xclaw("trace", "last", "--json").document["tree"])
    phases = cast("list[Json]", tree["phases"])
    assert [phase["phase"] for phase in phases] == [
        "research",
        "synthesis",
        "implementation",
        "verification",
        "finished",
    ]
    [receipt] = cast("list[Json]", phases[3]["checks"])
    assert (receipt["command"], receipt["exit_code"], receipt["ran"]) == (CHECK, 0, True)


@pytest.mark.parametrize(
    ("flags", "env", "agent"),
    [
        ((), {}, "orchestrator"),
        (("--coordinator",), {}, "coordinator"),
        ((), {"XCLAW_COORDINATOR_MODE": "1"}, "coordinator"),
        ((), {"XCLAW_COORDINATOR_MODE": "true"}, "coordinator"),
        ((), {"XCLAW_COORDINATOR_MODE": "0"}, "orchestrator"),
        (("-a", "orchestrator"), {"XCLAW_COORDINATOR_MODE": "1"}, "orchestrator"),
        (("-a", "coordinator"), {}, "coordinator"),
    ],
)
def test_flag_variable_and_agent_decide_who_answers(
    tmp_path: Path, flags: tuple[str, ...], env: dict[str, str], agent: str
) -> None:
    xclaw = Xclaw(tmp_path)
    done = xclaw(*RUN, xclaw.script(JOB), "-o", "json", *flags, "Rework it", **env)
    assert done.code == 0, done.err
    assert done.document["agent"] == agent


def test_a_setting_decides_too_and_a_word_that_is_no_switch_is_refused(tmp_path: Path) -> None:
    xclaw = Xclaw(tmp_path)
    xclaw.home.mkdir()
    (xclaw.home / "config.toml").write_text("[coordinator]\nmode = true\nmax_rounds = 2\n", "utf-8")
    done = xclaw(*RUN, xclaw.script(JOB), "-o", "json", "Rework it")
    assert done.document["agent"] == "coordinator"
    wrong = xclaw("run", "hello", XCLAW_COORDINATOR_MODE="perhaps")
    assert wrong.code == 2
    assert "XCLAW_COORDINATOR_MODE" in wrong.err


def test_a_verification_that_failed_makes_the_command_fail(tmp_path: Path) -> None:
    failing = [
        coordinator(
            call("research", tasks=QUESTIONS),
            call("write_plan", plan=[planned("a")]),
            call("implement"),
            checking("test -f b.py"),
            {"text": "All done."},
            {"text": "All done, really."},
        ),
        EXPLORER,
        worker("coder", *delivered("a.py")),
        running("test -f b.py"),
    ]
    xclaw = Xclaw(tmp_path)
    done = xclaw(*RUN, xclaw.script(failing), "--coordinator", "Rework it")
    assert done.code == 1
    assert "the verification of round 1 of 3 failed: `test -f b.py` ended with exit code 1" in done.err
