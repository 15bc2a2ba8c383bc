"""Plays teams: each member is a function of what it has been told and what its tools have answered."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from harness import Seen, against_provider, follow
from wire import Body, content, messages, outputs

from xclaw.app import App
from xclaw.contracts.events import Event, MailSent, MessageAdded, RunEnded, RunStarted, ToolCallEnded
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Reply, Text


@dataclass(frozen=True)
class View:
    """What a member sees: its task, what it was told since, what its tools have answered, in order."""

    task: str
    told: tuple[str, ...]
    outputs: tuple[str, ...]
    said: tuple[str, ...]
    body: Body

    @property
    def turns(self) -> int:
        """How often it was asked before."""
        return sum(message["role"] == "assistant" for message in messages(self.body))


Member = Callable[[View], Reply]


def call(tool: str, /, **arguments: object) -> Calls:
    return Calls(("c", tool, json.dumps(arguments, ensure_ascii=False)))


def send(to: str, message: str) -> Calls:
    return call("send_message", to=to, message=message)


def team(strategy: str, *agents: str, **more: object) -> Calls:
    return call(
        "create_team", name="squad", agents=list(agents), strategy=strategy, goal="Count the herons.", **more
    )


@dataclass
class Play:
    """Answers the lead with `make`, then with what it says to the team's result; members by their names."""

    make: Reply
    members: Mapping[str, Member]
    closing: Callable[[View], Reply] = field(default=lambda _: Text("The team is done."))
    views: dict[str, list[View]] = field(default_factory=dict[str, list[View]])

    def answer(self, body: Body) -> Reply:
        view = view_of(body)
        name = next((name for name in self.members if f"You are {name} of the team" in view.task), "")
        self.views.setdefault(name or "lead", []).append(view)
        if name:
            return self.members[name](view)
        return self.closing(view) if view.outputs else self.make


def view_of(body: Body) -> View:
    users = [content(m) for m in messages(body) if m["role"] == "user" and not _is_output(content(m))]
    said = [content(m) for m in messages(body) if m["role"] == "assistant"]
    return View(users[0], tuple(users[1:]), tuple(outputs(body)), tuple(said), body)


def _is_output(text: str) -> bool:
    return text.startswith(("tool output: ", "[Task state"))


@dataclass
class Played:
    seen: Seen
    play: Play
    record: dict[str, object]
    """What create_team answered."""

    def mail(self) -> list[tuple[str, str, str]]:
        return [(mail.sender, mail.to, mail.text) for mail in self.seen.events(MailSent) if mail.sender]

    def of(self, member: str) -> list[Event]:
        """The events of one member's run."""
        runs = {
            entry.address.run_id
            for entry in self.seen.entries
            if isinstance(entry.event, RunStarted)
            and entry.event.task is not None
            and entry.event.task.seat is not None
            and entry.event.task.seat.member == member
        }
        return [entry.event for entry in self.seen.entries if entry.address.run_id in runs]

    def read_by(self, member: str) -> list[MessageAdded]:
        return [event for event in self.of(member) if isinstance(event, MessageAdded)]

    def end_of(self, member: str) -> RunEnded:
        (ended,) = [event for event in self.of(member) if isinstance(event, RunEnded)]
        return ended


def play_team(home: Path, play: Play, **runtime: object) -> Played:
    """One request to its end."""
    found: list[Seen] = []

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(play.answer)
        found.append(await follow(await app.runs.start(RunRequest("Start the team.", "s"))))

    against_provider(home, scenario, window=None, **runtime)
    (answered,) = [e for e in found[0].events(ToolCallEnded) if e.name == "create_team"]
    return Played(found[0], play, cast("dict[str, object]", json.loads(answered.content)))
