"""A tree of 50 agents, four levels below the root, of every kind: what they are and what their model answers.

Each is a node with a name of its own. A chief delegates its first part, starts its second in the background,
waits, delivers and ends; so each has a known number of model calls, whatever is killed meanwhile.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.events import RunStarted

SLEEPER_S = 3_600
"""How long the program's daemon would live."""
QUESTIONS = 20
_PROGRAM = f"""
import os
import xclaw.script as xclaw

if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{SLEEPER_S}"])
    os._exit(0)
os.wait()
for number in range({QUESTIONS}):
    line = xclaw.ask(f"ASK-PROGRAM: line {{number}}, please")
xclaw.deliver("program.md", line)
xclaw.finish({{"part": "program"}})
"""


@dataclass(frozen=True, slots=True)
class Part:
    """One agent of the tree."""

    name: str
    agent: str
    parts: tuple["Part", ...] = ()
    """The first is delegated to, the second works in the background."""
    team: str = ""
    """Name of the team that it makes."""
    calls: tuple[int, ...] = ()
    """How many model calls it may have."""

    def all(self) -> Iterator["Part"]:
        yield self
        for part in self.parts:
            yield from part.all()


def hand(name: str) -> Part:
    return Part(name, "hand", calls=(2,))


def chief(name: str, agent: str, *parts: Part) -> Part:
    return Part(name, agent, parts, calls=(4,))


def section(name: str, agent: str, last: str = "hand") -> Part:
    """Five agents."""
    leaf = Part(f"{name}22", last, calls=(QUESTIONS,)) if last == "program" else hand(f"{name}22")
    return chief(name, agent, hand(f"{name}1"), chief(f"{name}2", "third", hand(f"{name}21"), leaf))


DUO = (
    chief("D21", "duo-first", hand("D211"), hand("D212")),
    chief("D22", "duo-second", hand("D221"), hand("D222")),
)
TRIO = (
    Part("T1", "trio-first", calls=(3,)),
    Part("T2", "trio-second", calls=(2, 3)),
    Part("T3", "trio-third", (hand("T31"),), calls=(4,)),
)
PARTS = (
    chief("A", "first", section("A1", "second"), section("A2", "second-forked")),
    chief("B", "first-forked", section("B1", "second"), section("B2", "second-forked")),
    chief("C", "first", section("C1", "second"), section("C2", "second", "program")),
    Part("D", "first-forked", (section("D1", "second"), *DUO), team="duo", calls=(4,)),
)
ROOT = Part("", "orchestrator", (*PARTS, *TRIO), team="trio", calls=(3,))
AGENTS = sum(1 for _ in ROOT.all())
TOOLS = "delegate, spawn, wait, create_team, send_message, deliver"
KINDS = {
    "first": "local",
    "first-forked": "forked",
    "second": "local",
    "second-forked": "forked",
    "third": "local",
    "hand": "local",
    "duo-first": "local",
    "duo-second": "local",
    "trio-first": "local",
    "trio-second": "local",
    "trio-third": "local",
}


def part_of(started: RunStarted) -> Part:
    """Whose run it is: members of a team are known by their agent, the others by their task."""
    named = re.match(r"TASK-(\w+):", started.task.text) if started.task else None
    if named is not None:
        return next(part for part in ROOT.all() if part.name == named[1])
    return next(part for part in ROOT.all() if part.agent == started.agent)


def write_agents(home: Path) -> None:
    """The agents' files, as a user has them."""
    directory = home / "agents"
    directory.mkdir(parents=True)
    for name, isolation in KINDS.items():
        front = f"name: {name}\ndescription: works\nisolation: {isolation}\ntools: {TOOLS}"
        (directory / f"{name}.md").write_text(f"---\n{front}\n---\nYou are {name} of the grove.\n")
    (directory / "program.py").write_text(_PROGRAM)
    front = "name: program\ndescription: counts\nscript: [program.py]"
    (directory / "program.md").write_text(f"---\n{front}\n---\nYou are program of the grove.\n")


def _call(tool: str, /, **arguments: object) -> dict[str, object]:
    return {"name": tool, "arguments": arguments}


def _task(name: str) -> str:
    return f"TASK-{name}: look at part {name}"


def _deliver(name: str) -> dict[str, object]:
    return {"calls": [_call("deliver", path=f"{name}.md", content=f"# {name}")]}


def _form(name: str) -> dict[str, object]:
    form = {"status": "success", "summary_data": {"part": name}, "artifact_pointers": {"file": f"{name}.md"}}
    return {"text": form}


def _starts(part: Part) -> dict[str, object]:
    """The first answer of a chief: every part that is not in its team, and the team."""
    parts = [each for each in part.parts if not part.team or not each.agent.startswith(part.team)]
    calls = [
        _call("spawn", agent=each.agent, prompt=_task(each.name))
        if number % 2
        else _call("delegate", agent=each.agent, task=_task(each.name))
        for number, each in enumerate(parts)
    ]
    if part.team:
        members = [each.agent for each in part.parts if each.agent.startswith(part.team)]
        strategy = "sequential" if part.team == "duo" else "parallel"
        goal = f"GOAL-{part.team}: look at it together"
        calls.append(_call("create_team", name=part.team, agents=members, strategy=strategy, goal=goal))
    return {"calls": calls}


def _rule(part: Part) -> dict[str, object]:
    team = next((each.team for each in ROOT.all() if part.agent.startswith(f"{each.team or '?'}-")), "")
    # The board that a parent is shown quotes its task, but at the beginning of no line.
    when = rf"(?:^|\n)GOAL-{team}" if team else rf"(?:^|\n)TASK-{part.name}:"
    last = {"text": f"{part.name} is done."} if team else _form(part.name)
    replies = [_deliver(part.name), last]
    if part.parts:
        replies = [_starts(part), {"calls": [_call("wait")]}, *replies]
    return {"agent": f"You are {part.agent} of the grove", "when": when, "replies": replies}


def rules() -> list[dict[str, object]]:
    """What the provider answers; by the request alone."""
    root: dict[str, object] = {
        "agent": "you are the orchestrator",
        "when": "^GROW",
        "replies": [_starts(ROOT), {"calls": [_call("wait")]}, {"text": "The grove stands."}],
    }
    ping: dict[str, object] = {
        "agent": "you are the orchestrator",
        "when": "^PING",
        "replies": [{"text": "pong"}],
    }
    program: dict[str, object] = {
        "agent": "you are program of the grove",
        "when": "ASK-PROGRAM",
        "replies": [{"text": "a line"}],
    }
    found = [
        _rule(part)
        for part in ROOT.all()
        if part is not ROOT and part.agent not in ("program", "trio-first", "trio-second")
    ]
    return [root, ping, program, *found, *_letters()]


def _letters() -> list[dict[str, object]]:
    """The first of the trio writes to the second, which waits for that."""
    first, second = "You are trio-first of the grove", "You are trio-second of the grove"
    writes: dict[str, object] = {
        "calls": [_call("send_message", to="trio-second", message="Part T1 is looked at.")]
    }
    return [
        {
            "agent": first,
            "when": r"(?:^|\n)GOAL-trio",
            "replies": [writes, _deliver("T1"), {"text": "T1 is done."}],
        },
        {
            "agent": second,
            "when": r"(?:^|\n)GOAL-trio",
            "replies": [{"calls": [_call("wait_for_mail", sender="trio-first")]}],
        },
        {"agent": second, "when": '<mail id="', "replies": [_deliver("T2"), {"text": "T2 is done."}]},
    ]
