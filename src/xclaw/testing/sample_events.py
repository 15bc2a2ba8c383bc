"""One stored event of every kind, with every field away from its default."""

from xclaw.contracts.agents import Limits
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.events import (
    ApprovalAnswered,
    ApprovalAsked,
    ArtifactDelivered,
    AttemptFailed,
    ChildEnded,
    ChildSpawned,
    Compacted,
    Event,
    MessageAdded,
    ModelAnswered,
    NotificationQueued,
    PhaseChanged,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCallEnded,
    ToolCallStarted,
    TurnStarted,
    Warned,
)
from xclaw.contracts.messages import AssistantMessage, ImageRef, Said, ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.permissions import Level, Permissions, Rules
from xclaw.contracts.plans import CheckRun, PlannedTask
from xclaw.contracts.projects import Conflict, Merged, Project, ProjectMerged
from xclaw.contracts.results import Result
from xclaw.contracts.routing import Route
from xclaw.contracts.tasks import Task
from xclaw.contracts.team_events import BoardChanged, MailSent
from xclaw.contracts.teams import Seat
from xclaw.contracts.usage import Spend, Usage
from xclaw.contracts.workflows import WorkflowNoted

_USAGE = Usage(120, 30, 64, 8, estimated=True)
_SPEND = Spend(_USAGE, 0.02, 1, 3)
_LIMITS = Limits(12, 60.5, 100_000, 0.25)
_POINTER = Pointer("/workspace/shared/abc123/report.md", "0" * 64, 2_048, "writer", "c1", 2)
_IMAGE = ImageRef("plots/a.png", "1" * 64, "image/png", 640, 480, 12_345)
_TASK = Task(
    "critic",
    "Judge it.\nBe fair.",
    "pipeline",
    "step1",
    (_POINTER,),
    {"type": "object", "required": ["verdict"]},
    structured=False,
    limits=_LIMITS,
    step=1,
    seat=Seat("squad", "critic#1", ("critic#1", "critic#2"), "round-robin"),
)
_RESULT = Result(
    "completed_unverified",
    "Done, I think.",
    {"decision": "ship", "scores": [1, 2.5, None], "nested": {"deep": True}},
    {"report": _POINTER},
    "no evidence",
    structured=False,
    spend=_SPEND,
    duration_s=4.5,
)


def _started(call: ToolCall) -> RunStarted:
    return RunStarted(
        "critic",
        "[Task workspace: /w]\n\nJudge it.",
        "agent",
        2,
        "You judge.",
        ("shell", "deliver"),
        ("openai:gpt-x", "script:a"),
        "json",
        _LIMITS,
        "call-0",
        "abc123",
        _TASK,
        "web",
        "message-1",
        scripted=True,
        route=Route("critic", "model", "asks for a judgement", "review", _SPEND, '{"agent": "critic"}'),
        history=(
            Said("assistant", "Yes?", (call,)),
            Said("tool", "a.txt", call_id="call-1", name="shell"),
        ),
        client_tools=(ToolSpec("look", "Looks.", {"type": "object"}, "reads"),),
        output_schema={"type": "object"},
        permissions=Permissions(
            (Level("settings", "plan", Rules(("shell(git *)",), ("web_fetch",), ("*",))),)
        ),
        project=Project(
            "/home/me/app", "git", "a" * 40, "b" * 40, True, ("left out (may hold secrets): .env",)
        ),
        worktree=True,
    )


def sample_events() -> tuple[Event, ...]:
    """A run that could have been, from `RunStarted` to `RunEnded`; no `TextDelta`, which is not stored."""
    call = ToolCall("call-1", "shell", '{"command": "ls"}')
    return (
        _started(call),
        RunResumed("owner-2"),
        TurnStarted(1, "openai:gpt-x", 5_000, 0.01),
        AttemptFailed(1, "openai:gpt-x", "overloaded", 529, _USAGE, None, "Hel", "script:a"),
        ModelAnswered(
            1,
            AssistantMessage("I look.", (call,), "thinking"),
            _USAGE,
            0.002,
            "script:a",
            "tool_calls",
            1.25,
            0.5,
            '{"action": "shell"}',
        ),
        ApprovalAsked(
            "a1", "call-1", "shell", call.arguments, "commands ask", "shell(ls)", ("root", "critic")
        ),
        ApprovalAnswered("a1", "edit", "owner", "safer so", '{"command": "ls -l"}', "shell(ls)"),
        ToolCallStarted("call-1", "shell", call.arguments),
        ToolCallEnded("call-1", "shell", False, "exit 2", 0.1, "/w/spilled.txt", 2, images=(_IMAGE,)),
        ChildSpawned("call-2", "c2", "cli:coder:def456", "def456", _TASK, background=True),
        ChildEnded("c2", _RESULT),
        ArtifactDelivered(_POINTER, "report"),
        NotificationQueued("r0"),
        MessageAdded("Mind the gap.", "user", "message-2"),
        WorkflowNoted("call_w", "phase", "gather"),
        ProjectMerged(
            Merged(
                "c" * 40, "xclaw/abc123", ("xclaw/1",), (Conflict("xclaw/2", "d" * 40, ("a.py",), "<<<"),)
            ),
            "call-3",
            "xclaw/abc123",
        ),
        *_work_of_several(),
        Warned("repeated_call", "three times the same"),
        Compacted(4, "They talked.", 9_000, 700, _USAGE, 0.001),
        RunEnded(_RESULT, "completed_unverified", 3, (_POINTER,)),
    )


def _work_of_several() -> tuple[Event, ...]:
    return (
        MailSent("mail-1", "c2", "Who counts?", "notification", "critic", "all"),
        BoardChanged("call-2", "added", "t2", "critic", "call-5", "Count.", ("t1",)),
        PhaseChanged(
            "implementation",
            2,
            3,
            "call-3",
            1,
            4,
            "core",
            "coder",
            "success",
            (PlannedTask("core", "coder", "Write it.", ("/w/a.md",), ("core.py",), ("base",)),),
            "failed",
            (CheckRun("pytest -q", "call-4", True, 1, "1 failed", "pytest", "c3"),),
        ),
    )
