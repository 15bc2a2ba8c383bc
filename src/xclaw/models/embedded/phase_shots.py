"""What a small model needs to coordinate, and to check: a short brief and one worked example each."""

from collections.abc import Mapping

from xclaw.contracts.messages import ChatMessage
from xclaw.models.embedded.shots import Example, task_text

_BRIEF = """\
You are a coordinator. You do nothing yourself: workers do, and see only what you write for them.
Workers:
{agents}

Answer with one JSON object per turn, nothing else, in this order:
{{"action":"research","tasks":[{{"question":"..."}}]}} asks what has to be known first. One or two questions.
{{"action":"write_plan","plan":[{{"id":"t1","task":"...","agent":"coder","writes":["name.py"],"depends_on":[]}}]}} is the \
whole plan. Put every detail of the request into each task. One or two tasks. A file is written by one task only.
{{"action":"implement"}} has the plan carried out.
{{"action":"verify","checks":[{{"why":"...","command":"..."}}]}} runs commands where the written files lie. Exit code 0 \
means that a check passed: python3 -c "from name import f; assert f(1) == 2".
{{"action":"answer","text":"..."}} ends, in the user's language, with what was done and which checks passed.
A check that failed: write_plan again, with the task that mends it, then implement and verify with the same checks."""


def coordinator_brief(agents: Mapping[str, str]) -> str:
    """A short system prompt; `agents` maps names to descriptions."""
    chosen = {name: text for name, text in agents.items() if name in _WORKERS}
    return _BRIEF.format(agents="\n".join(f"- {name}: {text}" for name, text in (chosen or agents).items()))


_WORKERS = ("coder", "writer", "reviewer", "explorer", "general")
"""More to choose from would be chosen wrong more often."""

coordinator_shots: tuple[ChatMessage, ...] = (
    Example("Write a Python module that converts temperatures, and make sure that it works")
    .call(
        "research",
        {
            "phase": "research",
            "reports": [
                {
                    "n": 1,
                    "agent": "explorer",
                    "status": "success",
                    "report": '{"summary":"Celsius to Fahrenheit: c * 9 / 5 + 32. Back: (f - 32) * 5 / 9."}',
                }
            ],
        },
        tasks=[
            {"question": "Which formulas convert between Celsius and Fahrenheit, and what are known values?"}
        ],
    )
    .call(
        "write_plan",
        {"accepted": 1, "begin_at_once": ["t1"], "round": 1},
        plan=[
            {
                "id": "t1",
                "task": "Write the Python module temperature.py with celsius_to_fahrenheit(c) = c * 9 / 5 + 32 and "
                "fahrenheit_to_celsius(f) = (f - 32) * 5 / 9, from float to float. Deliver temperature.py.",
                "agent": "coder",
                "writes": ["temperature.py"],
                "depends_on": [],
            }
        ],
    )
    .call(
        "implement",
        {
            "phase": "implementation",
            "done": ["t1"],
            "not_done": [],
            "results": [{"id": "t1", "status": "success", "report": '{"summary":"Two functions."}'}],
        },
    )
    .call(
        "verify",
        {
            "phase": "verification",
            "verdict": "passed",
            "checks": [{"why": "100 C is 212 F", "result": "passed", "exit_code": 0}],
        },
        checks=[
            {
                "why": "100 C is 212 F",
                "command": 'python3 -c "from temperature import celsius_to_fahrenheit as f; assert f(100) == 212"',
            }
        ],
    )
    .end(
        action="answer",
        text="Done: temperature.py converts in both directions. The check that 100 C is 212 F passed.",
    )
)
"""All phases, each once."""

verifier_shots: tuple[ChatMessage, ...] = (
    Example(
        task_text(
            "9a0b1c", "Run each of these commands with the shell tool:\n\n1. python3 -m py_compile a.py"
        )
    )
    .call("shell", "[exit code 0]", command="python3 -m py_compile a.py")
    .end(
        action="result",
        status="success",
        summary_data={"summary": "1. python3 -m py_compile a.py: exit code 0."},
        artifact_pointers={},
    )
)
