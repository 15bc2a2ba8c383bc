"""The JSON Schema of one reply of a small model: few choices, bounded strings, names from lists.

What a schema rules out cannot go wrong: unknown agents, invented pointers, optional parameters that
invite nonsense. It stays small, since the server compiles it into a grammar.
"""

from collections.abc import Mapping, Sequence
from typing import cast

from xclaw.contracts.models import ToolSpec

LONGEST_TEXT = 2_000
"""Characters of a task, question, answer or summary: ends a reply that repeats itself."""
_MAX_ITEMS = 5
_UNBOUNDED = frozenset({"content"})
"""A file is not cut by the schema, which would pass for a whole one: the output limit says that it was."""
_PATH = {"type": "string", "pattern": r"^\S[^\n]{0,250}$"}
"""Small models like to begin a file name with a space."""
_AGENT = frozenset({"agent", "agents"})


def action_schema(
    tools: Sequence[ToolSpec],
    final: Mapping[str, object] | None,
    *,
    agents: Sequence[str] = (),
    delivered: Sequence[str] = (),
    ends: bool = True,
    summary: int = LONGEST_TEXT,
) -> dict[str, object]:
    """One action, or the end (if `ends`): an answer in text when `final` is None, else the result form.

    `final` is the result form's schema, whose summary_data may be a task's own (SPEC E4). `agents`:
    who may be named. `delivered`: paths of which artifact_pointers must consist, by file name; with
    none it is empty, and the runtime adds what was delivered. `summary`: characters of a result's.
    """
    options = [_action(tool, agents) for tool in tools]
    if ends:
        options.append(_answer() if final is None else _result(final, delivered, summary))
    return {"anyOf": options}


def _action(tool: ToolSpec, agents: Sequence[str]) -> dict[str, object]:
    """Required parameters only, and what a file holds. Free text before names: the model decides better after
    wording the task."""
    properties = _mapping(tool.parameters.get("properties"))
    asked = {*_strings(tool.parameters.get("required")), *_UNBOUNDED}
    required = [name for name in properties if name in asked]
    required.sort(key=lambda name: name in _AGENT)
    fields = {name: _parameter(name, _mapping(properties[name]), agents) for name in required}
    return _object({"action": {"const": tool.name}, **fields})


def _parameter(name: str, asked: Mapping[str, object], agents: Sequence[str]) -> dict[str, object]:
    asked = _list_rather_than_text(asked)
    kind = asked.get("type")
    if name == "agent" and agents:
        return {"enum": list(agents)}
    if name == "path" and kind == "string":
        return dict(_PATH)
    if kind == "array":
        return _array(name, asked, agents)
    if kind == "object" and _mapping(asked.get("properties")):
        properties = _mapping(asked.get("properties"))
        names = sorted(properties, key=lambda each: each in _AGENT)
        return _object({each: _parameter(each, _mapping(properties[each]), agents) for each in names})
    if kind == "string" and "enum" not in asked and name not in _UNBOUNDED:
        return {"minLength": 1, "maxLength": LONGEST_TEXT} | _without_words(asked)
    return _without_words(asked)


def _array(name: str, asked: Mapping[str, object], agents: Sequence[str]) -> dict[str, object]:
    if name == "agents" and agents:
        items: dict[str, object] = {"enum": list(agents)}
    else:
        items = _parameter("", _mapping(asked.get("items")), agents)
    fewest = 2 if name in ("agents", "steps") else 1
    return {"type": "array", "items": items, "minItems": fewest, "maxItems": _MAX_ITEMS}


def _list_rather_than_text(asked: Mapping[str, object]) -> Mapping[str, object]:
    """Of the spellings that a parameter allows the structured one, which a schema can hold the model to."""
    choices = asked.get("anyOf")
    if not isinstance(choices, list):
        return asked
    options = [_mapping(choice) for choice in cast("list[object]", choices)]
    return next(
        (option for option in options if option.get("type") == "array"), options[0] if options else asked
    )


def _answer() -> dict[str, object]:
    return _object({"action": {"const": "answer"}, "text": _text()})


def _result(final: Mapping[str, object], delivered: Sequence[str], most: int) -> dict[str, object]:
    summary = _mapping(_mapping(final.get("properties")).get("summary_data"))
    if not _mapping(summary.get("properties")):
        summary = _object({"summary": _text(most)})
    pointers = {path.rsplit("/", 1)[-1]: {"const": path} for path in delivered}
    return _object(
        {
            "action": {"const": "result"},
            "status": {"enum": ["success", "error"]},
            "summary_data": dict(summary),
            "artifact_pointers": _object(dict[str, object](pointers)),
        }
    )


def _text(most: int = LONGEST_TEXT) -> dict[str, object]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _object(properties: dict[str, object]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _without_words(asked: Mapping[str, object]) -> dict[str, object]:
    return {
        key: value
        for key, value in asked.items()
        if key not in ("description", "title", "default", "examples")
    }


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}


def _strings(value: object) -> list[str]:
    return (
        [item for item in cast("list[object]", value) if isinstance(item, str)]
        if isinstance(value, list)
        else []
    )
