"""Plays conversations of a whole tree against a fake provider, and reads what the provider was sent."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from harness import Seen, against_provider, ask

from xclaw.app import App
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Reply, Text

Body = dict[str, object]
Wired = dict[str, object]

DIALECTS = ("native", "json")


def messages(body: Body) -> list[Wired]:
    return cast("list[Wired]", body["messages"])


def content(message: Wired) -> str:
    return str(message.get("content") or "")


def system(body: Body) -> str:
    return content(messages(body)[0])


def spoken(body: Body) -> str:
    """All that the request says, but for the system prompt."""
    return "\n".join(content(message) for message in messages(body)[1:])


def outputs(body: Body) -> list[str]:
    """What tools answered, in order, in either dialect."""
    return [
        content(message)
        for message in messages(body)
        if message["role"] == "tool" or content(message).startswith("tool output: ")
    ]


def asked_calls(body: Body) -> list[tuple[str, str, str]]:
    """(id, name, arguments) of every native call in the conversation."""
    found: list[tuple[str, str, str]] = []
    for message in messages(body):
        for call in cast("list[Wired]", message.get("tool_calls") or []):
            function = cast("dict[str, str]", call["function"])
            found.append((str(call["id"]), function["name"], function["arguments"]))
    return found


def tool_names(body: Body) -> list[str]:
    return [
        cast("dict[str, str]", tool["function"])["name"]
        for tool in cast("list[Wired]", body.get("tools") or [])
    ]


def refused_by_providers(body: Body) -> list[str]:
    """What a strict provider would answer with a 400: pairing, ids, arguments, names."""
    problems: list[str] = []
    seen: set[str] = set()
    expected: list[str] = []
    for message in messages(body):
        if message["role"] == "tool":
            if not expected or message["tool_call_id"] != expected.pop(0):
                problems.append(f"a result for {message['tool_call_id']} in the wrong place")
            continue
        problems += [f"no result for {call_id}" for call_id in expected]
        expected = []
        for call in cast("list[Wired]", message.get("tool_calls") or []):
            call_id, function = str(call["id"]), cast("dict[str, str]", call["function"])
            if call_id in seen or not 0 < len(call_id) <= 64:
                problems.append(f"the id {call_id!r} is used twice or too long")
            if not isinstance(json.loads(function["arguments"]), dict):
                problems.append("arguments that are no object")
            if not (
                function["name"].replace("_", "a").replace("-", "a").isalnum() and function["name"].isascii()
            ):
                problems.append(f"the name {function['name']!r}")
            seen.add(call_id)
            expected.append(call_id)
    return [*problems, *(f"no result for {call_id}" for call_id in expected)]


NOTHING: dict[str, object] = {}


def act(dialect: str, *calls: tuple[str, object]) -> Reply:
    """Tool calls; arguments that are text are sent as they are."""
    if dialect == "native":
        parts = ((f"c{n}", name, _json(arguments)) for n, (name, arguments) in enumerate(calls, 1))
        return Calls(*parts)
    return Text("\n".join(json.dumps({"action": name, "args": args}) for name, args in calls))


def _json(arguments: object) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


def form(summary: object = "done", status: str = "success", pointers: object = None) -> Text:
    """The result form that ends a structured task."""
    fields: dict[str, object] = {"status": status, "summary_data": summary}
    fields["artifact_pointers"] = {} if pointers is None else pointers
    return Text(json.dumps(fields, ensure_ascii=False))


class Cast:
    """Answers each conversation from its own list, told apart by a word in its first message.

    Every request is checked as a strict provider would.
    """

    def __init__(self, roles: Mapping[str, Sequence[Reply]]) -> None:
        self._roles = {word: list(replies) for word, replies in roles.items()}
        self.asked: dict[str, list[Body]] = {word: [] for word in roles}

    def answer(self, body: Body) -> Reply:
        problems = refused_by_providers(body)
        assert not problems, problems
        first = next(content(message) for message in messages(body) if message["role"] == "user")
        word = next(word for word in self._roles if word in first)
        self.asked[word].append(body)
        replies = self._roles[word]
        return replies.pop(0) if len(replies) > 1 else replies[0]


@dataclass(frozen=True, slots=True)
class Played:
    seen: Seen
    asked: dict[str, list[Body]]


def play(
    home: Path,
    roles: Mapping[str, Sequence[Reply]],
    text: str = "START",
    *,
    dialect: str = "native",
    window: int | None = None,
    **runtime: object,
) -> Played:
    """One request to its end. The last reply of a role repeats."""
    troupe = Cast(roles)
    found: list[Seen] = []

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        found.append(await ask(app, text))

    against_provider(home, scenario, window=window, dialect=dialect, **runtime)
    return Played(found[0], troupe.asked)
