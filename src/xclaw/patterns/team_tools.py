"""wait_for_mail and team_tasks: what the members of a team have beside their own tools."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import assert_never

from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.teams import Membership, Waited
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import list_of_names, optional_seconds, optional_text, shown, text_argument
from xclaw.patterns.parameters import optional

ACTIONS = ("list", "add", "claim", "complete", "release")


class WaitForMailTool:
    """Waits until a team mate writes. Cancelling it ends the wait."""

    replayable: bool = True
    """It only waits; what has come is read at the next turn."""
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "wait_for_mail",
            "Wait until a team mate writes to you; you read it next. Only when you cannot go on without it: "
            "if everybody waits, the team is ended.",
            {
                "type": "object",
                "properties": {
                    "sender": optional(["string"], "Whose mail you wait for"),
                    "timeout_s": optional(["number", "string"], "Go on without it after this many seconds"),
                },
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        timeout_s = optional_seconds(arguments, "timeout_s")
        membership = _membership(context.spawn)
        sender = _mate(membership, optional_text(arguments, "sender"))
        waited = await membership.wait_for_mail(timeout_s, sender)
        return ToolOutput(json.dumps({"waited": waited, "note": _note(waited, sender)}, ensure_ascii=False))


class TeamTasksTool:
    """The team's task board. Each change is one step, and the same call changes nothing twice."""

    replayable: bool = True
    """The same call finds what it had changed."""
    timeout_s: float | None = None

    def __init__(self) -> None:
        self.spec = ToolSpec(
            "team_tasks",
            "Your team's task board. list: all tasks; add: a new one (`text`, and `after`: ids that have to be "
            "done first); claim, complete (with `text`: what came of it), release: one of them (`id`). A task "
            "that somebody has claimed is theirs until they release it or end.",
            {
                "type": "object",
                "properties": {
                    "action": {"type": "string", "description": f"One of {', '.join(ACTIONS)}"},
                    "id": optional(["string"], "Of the task, e.g. t1"),
                    "text": optional(["string"], "What is to be done, or what came of it"),
                    "after": {
                        "description": 'Ids of tasks that have to be done first, e.g. ["t1"]',
                        "anyOf": [
                            {"type": "array", "items": {"type": "string"}},
                            {"type": "string"},
                            {"type": "null"},
                        ],
                    },
                },
                "required": ["action"],
            },
            effect="reads",
        )

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        membership = _membership(context.spawn)
        action = text_argument(arguments, "action", '"claim"').strip().casefold()
        match action:
            case "list":
                tasks = [asdict(task) for task in membership.tasks()]
                return ToolOutput(json.dumps({"tasks": tasks}, ensure_ascii=False))
            case "add":
                after = arguments.get("after")
                ids = list_of_names(after, "after", '["t1"]') if after not in (None, "", []) else []
                task = membership.add(text_argument(arguments, "text", '"Check ..."'), tuple(ids))
            case "claim":
                task = membership.claim(text_argument(arguments, "id", '"t1"'))
            case "complete":
                note = optional_text(arguments, "text") or ""
                task = membership.complete(text_argument(arguments, "id", '"t1"'), note)
            case "release":
                task = membership.release(text_argument(arguments, "id", '"t1"'))
            case _:
                raise ToolFailed(f"`action` {shown(action)} is not one of {', '.join(ACTIONS)}")
        return ToolOutput(json.dumps(asdict(task), ensure_ascii=False))


def _membership(spawn: Spawn) -> Membership:
    try:
        return spawn.membership()
    except SpawnRefused as refusal:
        raise ToolFailed(str(refusal)) from None


def _mate(membership: Membership, name: str | None) -> str:
    """A team mate's name as the team has it; empty for anybody."""
    if name is None:
        return ""
    seat = membership.seat
    for mate in seat.members:
        if mate != seat.member and mate.casefold() == name.strip().casefold():
            return mate
    raise ToolFailed(f"sender: {shown(name)} is no mate of yours; there are {', '.join(seat.members)}")


def _note(waited: Waited, sender: str) -> str:
    match waited:
        case "mail":
            return "you have mail; it follows"
        case "time":
            return "nobody has written in that time; go on without it"
        case "nobody":
            return "nobody is going to write: the others wait themselves, have answered or have ended"
        case "ended":
            return f"{sender} has ended and will not write any more; go on without it"
        case _:
            assert_never(waited)
