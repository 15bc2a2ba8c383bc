"""The main job end to end on scripted models (SPEC C3, D1, D6, E1, E5)."""

from pathlib import Path

from harness import Script, run_script

from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildEnded,
    ChildSpawned,
    RunStarted,
    ToolCallEnded,
    Warned,
)

SPLIT: Script = [
    {
        "agent": "orchestrator",
        "replies": [
            {
                "calls": [
                    {"name": "delegate", "arguments": {"agent": "coder", "task": "Write slug.py with slugify()."}},
                    {"name": "delegate", "arguments": {"agent": "writer", "task": "Write a README for slugify()."}},
                ]
            },
            {"text": "Both files are delivered."},
        ],
    },
    {
        "agent": "coder",
        "replies": [
            {"calls": [{"name": "deliver", "arguments": {"path": "{{delivery_dir}}/slug.py", "content": "def slugify(): ..."}}]},
            {"text": {"status": "success", "summary_data": {"exports": ["slugify"]}, "artifact_pointers": {"code": "{{pointer:slug.py}}"}}},
        ],
    },
    {
        "agent": "writer",
        "replies": [
            {"calls": [{"name": "deliver", "arguments": {"path": "README.md", "content": "# slugify"}}]},
            {"text": {"status": "success", "summary_data": {"sections": 1}, "artifact_pointers": {"readme": "{{pointer:README.md}}"}}},
        ],
    },
]  # fmt: skip


def test_an_orchestrator_splits_a_request_and_two_workers_deliver_files(tmp_path: Path) -> None:
    seen = run_script(tmp_path, SPLIT, "Write slugify with a README")
    assert (seen.result.outcome, seen.result.text) == ("success", "Both files are delivered.")
    assert {e.agent for e in seen.events(RunStarted)} == {"orchestrator", "coder", "writer"}
    delivered = [e.pointer for e in seen.events(ArtifactDelivered)]
    assert sorted(Path(p.path).name for p in delivered) == ["README.md", "slug.py"]
    assert all(Path(p.path).read_bytes() for p in delivered)
    spawned = seen.events(ChildSpawned)
    assert all(e.child_session_id == f"s:{e.task.agent}:{e.task_id}" for e in spawned)
    assert [e.result.succeeded for e in seen.events(ChildEnded)] == [True, True]


def test_delegates_of_one_turn_that_need_one_another_get_a_hint(tmp_path: Path) -> None:
    """The fan-out hint sees all delegates of a turn; it is a note, never a refusal."""
    tasks = [
        "Write the module parse.py with parse(text).",
        "Review the code from the first task for errors and list them.",
    ]
    calls = [{"name": "delegate", "arguments": {"agent": "coder", "task": task}} for task in tasks]
    done = {"status": "success", "summary_data": {"done": True}, "artifact_pointers": {}}
    script: Script = [
        {"agent": "orchestrator", "replies": [{"calls": calls}, {"text": "Done."}]},
        {"agent": "coder", "replies": [{"text": done}]},
    ]
    seen = run_script(tmp_path, script, "Write a parser and have it reviewed")
    assert [e.code for e in seen.events(Warned)].count("fan_out") == 1
    assert sum("starts at the same time" in e.content for e in seen.events(ToolCallEnded)) == 1
    assert seen.result.outcome == "success"
