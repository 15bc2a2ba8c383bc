"""Full mode from the command line (SPEC F3)."""

from pathlib import Path

import pytest
from xclaw_command import HELLO, Xclaw

WORK: list[object] = [
    {
        "agent": "orchestrator",
        "replies": [
            {
                "calls": [
                    {
                        "name": "delegate",
                        "arguments": {"agent": "coder", "task": "Write hello.py, printing hello."},
                    }
                ]
            },
            {"text": "All done."},
        ],
    },
    {
        "agent": "coder",
        "replies": [
            {"calls": [{"name": "shell", "arguments": {"command": "echo 'print(1)' > hello.py; pwd"}}]},
            {
                "calls": [
                    {"name": "deliver", "arguments": {"path": "hello.py", "from_file": "/workspace/hello.py"}}
                ]
            },
            {"text": {"status": "success", "summary_data": {"n": 1}, "artifact_pointers": {}}},
        ],
    },
]


@pytest.fixture
def xclaw(tmp_path: Path) -> Xclaw:
    return Xclaw(tmp_path)


def test_what_keeps_commands_in_is_said_once_and_traced(xclaw: Xclaw) -> None:
    """F3, K5: with the one that was asked for by name."""
    ended = xclaw("run", "go", "--sandbox", "bubblewrap", "-m", xclaw.script(WORK))
    assert ended.code == 0, ended.err
    assert ended.out.count("[sandbox: bubblewrap] commands of agents run in it") == 1
    assert "delivered: " in ended.out
    assert "[sandbox: bubblewrap]" in xclaw("trace").out
    tree = xclaw("trace", "--json").document["tree"]
    assert isinstance(tree, dict)
    assert tree["sandbox"] == "bubblewrap"


def test_scripts_of_host_mode_work_in_full_mode(xclaw: Xclaw) -> None:
    """D6: where artifacts are named only."""
    assert xclaw("run", "go", "--mode", "full", "-m", xclaw.script(HELLO)).code == 0


def test_a_sandbox_that_does_not_work_here_is_an_error_of_use(xclaw: Xclaw) -> None:
    """F3: and nothing is run with less."""
    ended = xclaw("run", "go", "--sandbox", "bubblewrap", "-m", xclaw.script(WORK), PATH="/nowhere")
    assert ended.code == 2
    assert "Nothing weaker is used in its place" in ended.err
    assert "no runs" in xclaw("tasks").out


def test_flags_that_contradict_one_another_are_refused(xclaw: Xclaw) -> None:
    ended = xclaw("run", "go", "--mode", "host", "--sandbox", "kvm", "-m", xclaw.script(WORK))
    assert ended.code == 2
    assert "leave one of them out" in ended.err
