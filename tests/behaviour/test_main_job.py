"""The main job end to end on scripted models (SPEC C3, D1, D6, E1, E5)."""

from pathlib import Path

from harness import Script, run_script

from xclaw.contracts.events import ArtifactDelivered, ChildEnded, ChildSpawned, RunStarted

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
