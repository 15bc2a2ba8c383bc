"""What one reply of a small model may be while it coordinates or checks: the step that is next, nothing else."""

from collections.abc import Sequence

from xclaw.contracts.coaching import Standing

_IDS = ("t1", "t2", "t3")
"""Names of tasks: one that was invented need not be repeated right."""
_MOST = 3
_ANSWER = {
    "type": "string",
    "pattern": r"^([^.\n]|\.[A-Za-z0-9_(]){1,240}\.( ([^.\n]|\.[A-Za-z0-9_(]){1,240}\.)?$",
}
"""Two sentences at most: from the third on a small model tells of checks that nobody has run."""
_LINE = {"type": "string", "pattern": r"^\S[^\n]{1,240}$"}
_FILE = {"type": "string", "pattern": r"^[A-Za-z0-9_][A-Za-z0-9_./-]{0,80}\.[a-z]{1,5}$"}


def phase_schema(standing: Standing, agents: Sequence[str]) -> dict[str, object]:
    """The proposed tool of the phase, or the answer when the work is over or goes round in circles."""
    tool = "" if standing.is_over or not standing.offered else standing.offered[0]
    match tool:
        case "research":
            question = _object({"question": _text(400)})
            return _object({"action": {"const": tool}, "tasks": _list(question)})
        case "write_plan":
            return _object({"action": {"const": tool}, "plan": _plan(agents)})
        case "implement":
            return _object({"action": {"const": tool}})
        case "verify":
            check = _object({"why": _text(160), "command": _LINE})
            return _object({"action": {"const": tool}, "checks": _list(check)})
        case _:
            return _object({"action": {"const": "answer"}, "text": dict(_ANSWER)})


def command_schema(command: str) -> dict[str, object]:
    """The call that runs this very command."""
    return _object({"action": {"const": "shell"}, "command": {"const": command}})


def _plan(agents: Sequence[str]) -> dict[str, object]:
    """Of any length, in which a task can depend on earlier ones only: no plan can go round in a circle. Each
    length stands by itself, since the server's grammar takes all of `prefixItems` for required."""
    tasks = [_planned(agents, position) for position in range(len(_IDS))]
    return {"anyOf": [_exactly(tasks[:length]) for length in range(1, len(tasks) + 1)]}


def _exactly(items: Sequence[dict[str, object]]) -> dict[str, object]:
    return {"type": "array", "prefixItems": list(items), "minItems": len(items), "maxItems": len(items)}


def _planned(agents: Sequence[str], position: int) -> dict[str, object]:
    earlier: dict[str, object] = {"enum": list(_IDS[:position])} if position else {}
    return _object(
        {
            "id": {"const": _IDS[position]},
            "task": _text(1_200),
            "agent": {"enum": list(agents)},
            "writes": _list(dict(_FILE)),
            "depends_on": _list(earlier, least=0, most=position),
        }
    )


def _list(items: dict[str, object], *, least: int = 1, most: int = _MOST) -> dict[str, object]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most}


def _text(characters: int) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": characters}


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
