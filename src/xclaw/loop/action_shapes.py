"""What a JSON value that a model wrote means: tool calls, a final answer, a failed attempt, or data.

Models spell one thing in many ways: `{"action": "x", "path": …}`, `{"name": "x", "arguments": {…}}`,
`{"tool_call": {…}}`, `{"type": "function", "function": {…}}` and so on. All of them are read here.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import cast

from xclaw.loop.arguments import resolve_name
from xclaw.loop.json_blocks import encode_json

MAX_NESTING = 6
MAX_NAME_CHARS = 200

_NAME_KEYS = ("action", "tool_name", "function_name", "recipient_name", "tool", "function", "name")
_GENERIC_NAME_KEYS = ("tool", "function", "name")
"""Words that plain data uses too: beside them there must be arguments or a known tool."""
_ENVELOPE_KEYS = (
    "tool_call",
    "tool_calls",
    "function_call",
    "function_calls",
    "tool_use",
    "tool_uses",
    "actions",
    "calls",
    "call",
    "action",
    "function",
    "tool",
)
_ATTEMPT_KEYS = frozenset(_ENVELOPE_KEYS[:7]) | {"action", "action_input", "tool_name", "function_name"}
_CERTAIN_ARGUMENT_KEYS = ("args", "arguments", "action_input", "tool_input")
_ARGUMENT_KEYS = (*_CERTAIN_ARGUMENT_KEYS, "parameters", "params", "input", "kwargs")
_META_KEYS = frozenset({"thought", "thoughts"})
_TYPE_WORDS = frozenset({"function", "tool_use", "tool_call", "function_call"})
_FINAL_NAMES = frozenset(
    {"answer", "final_answer", "final", "finish", "result", "respond", "reply", "done", "final answer"}
)
_TEXT_KEYS = ("text", "answer", "content", "message", "response", "final_answer", "result", "output")

Call = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Calls:
    calls: tuple[Call, ...]


@dataclass(frozen=True, slots=True)
class Final:
    """A final answer; `text` is None when the object itself is the result form."""

    text: str | None


@dataclass(frozen=True, slots=True)
class Attempt:
    """Meant as an action, and not understood."""

    reason: str


Meaning = Calls | Final | Attempt | None
"""None: data, not an action."""


def meaning_of(value: object, tools: Collection[str], depth: int = 0) -> Meaning:
    """What `value` asks for. Names are resolved against `tools`; unknown ones are kept as written."""
    if depth > MAX_NESTING:
        return None
    if isinstance(value, list):
        return _meaning_of_list(cast(list[object], value), tools, depth)
    if not isinstance(value, dict):
        return None
    fields = _with_plain_keys(cast(dict[object, object], value))
    if is_result_form(fields):
        return _result_form(fields, tools)
    return (
        _by_name(fields, tools)
        or _by_envelope(fields, tools, depth)
        or _keyed_by_tool(fields, tools)
        or _attempt(fields)
    )


def _by_name(fields: dict[str, object], tools: Collection[str]) -> Meaning:
    for key in _NAME_KEYS:
        name = fields.get(key)
        if isinstance(name, str) and (meaning := _named(key, name, fields, tools)):
            return meaning
    return None


def _by_envelope(fields: dict[str, object], tools: Collection[str], depth: int) -> Meaning:
    for key in _ENVELOPE_KEYS:
        inner = fields.get(key)
        if isinstance(inner, dict | list) and (meaning := meaning_of(cast(object, inner), tools, depth + 1)):
            return meaning
    return None


def is_result_form(fields: Mapping[str, object]) -> bool:
    """Whether an object is `{"status": …, "summary_data": …, "artifact_pointers": …}` (SPEC E1)."""
    return "status" in fields and ("summary_data" in fields or "artifact_pointers" in fields)


def _with_plain_keys(value: dict[object, object]) -> dict[str, object]:
    """Keys that name a part of a call in lower case; all others as they are."""
    known = {*_NAME_KEYS, *_ENVELOPE_KEYS, *_ARGUMENT_KEYS, "status", "summary_data", "artifact_pointers"}
    fields: dict[str, object] = {}
    for key, item in value.items():
        plain = str(key).strip().lower().replace(" ", "_").replace("-", "_")
        fields[plain if plain in known and plain not in value else str(key)] = item
    return fields


def _meaning_of_list(items: list[object], tools: Collection[str], depth: int) -> Meaning:
    meanings = [meaning_of(item, tools, depth + 1) for item in items]
    calls = [call for meaning in meanings if isinstance(meaning, Calls) for call in meaning.calls]
    finals = [meaning for meaning in meanings if isinstance(meaning, Final)]
    if calls:
        if isinstance(meanings[0], Calls) and all(isinstance(m, Calls | Final) for m in meanings):
            return Calls(tuple(calls))
        return Attempt("one of the actions in the array could not be read")
    if finals and len(items) == 1:
        return finals[0]
    return next((meaning for meaning in meanings if isinstance(meaning, Attempt)), None)


def _result_form(fields: dict[str, object], tools: Collection[str]) -> Meaning:
    """The form itself, bare or as `{"action": "result", …the form}`."""
    name = fields.get("action")
    if name is None:
        return Final(None)
    if isinstance(name, str) and resolve_name(name, tools) is None and _folded(name) in _FINAL_NAMES:
        return Final(encode_json({key: item for key, item in fields.items() if key != "action"}))
    return _named("action", name, fields, tools) if isinstance(name, str) else Final(None)


def _named(key: str, name: str, fields: dict[str, object], tools: Collection[str]) -> Meaning:
    known = resolve_name(name, tools)
    if known is None:
        if key == "action" and _folded(name) in _FINAL_NAMES:
            return _final(fields)
        if not name.strip():
            return Attempt(f'"{key}" is empty: it must name a tool')
        if key in _GENERIC_NAME_KEYS and not _has_arguments(fields):
            return None
    return Calls(((known or name.strip()[:MAX_NAME_CHARS], _arguments(key, fields)),))


def _has_arguments(fields: dict[str, object]) -> bool:
    if fields.get("type") in _TYPE_WORDS:
        return True
    return any(isinstance(fields.get(key), dict | str) for key in _CERTAIN_ARGUMENT_KEYS)


def _arguments(name_key: str, fields: dict[str, object]) -> str:
    """JSON text of the arguments, from under their own key or from beside the name."""
    rest = {key: item for key, item in fields.items() if key != name_key and key not in _META_KEYS}
    if rest.get("type") in _TYPE_WORDS:
        del rest["type"]
    for key in _ARGUMENT_KEYS:
        if key not in rest:
            continue
        inner = rest[key]
        if len(rest) == 1 or (name_key in _GENERIC_NAME_KEYS and not isinstance(inner, str)):
            return _argument_text(inner)
        if key in _CERTAIN_ARGUMENT_KEYS:
            del rest[key]
            if isinstance(inner, dict):
                return encode_json({**rest, **cast(dict[str, object], inner)})
            return _argument_text(inner)
    return encode_json(rest)


def _argument_text(inner: object) -> str:
    if isinstance(inner, str) and (not inner.strip() or inner.lstrip().startswith("{")):
        return inner
    return encode_json(inner)


def _final(fields: dict[str, object]) -> Meaning:
    """The answer in `{"action": "answer", "text": …}` and its other spellings."""
    for key in ("result", "output", *_ARGUMENT_KEYS):
        inner = fields.get(key)
        if isinstance(inner, dict):
            inner_fields = _with_plain_keys(cast(dict[object, object], inner))
            if is_result_form(inner_fields):
                return Final(encode_json(inner_fields))
            return _final(inner_fields)
    for key in (*_TEXT_KEYS, *_ARGUMENT_KEYS):
        inner = fields.get(key)
        if inner is not None:
            return Final(inner if isinstance(inner, str) else encode_json(inner))
    return Attempt('the answer has no "text"')


def _keyed_by_tool(fields: dict[str, object], tools: Collection[str]) -> Meaning:
    """`{"list_dir": {"path": "."}}`"""
    if len(fields) != 1:
        return None
    [(name, inner)] = fields.items()
    if name not in tools or not isinstance(inner, dict):
        return None
    return Calls(((name, encode_json(cast(object, inner))),))


def _attempt(fields: dict[str, object]) -> Meaning:
    if not _ATTEMPT_KEYS.isdisjoint(fields):
        return Attempt('the object does not name a tool in "action"')
    return None


def _folded(name: str) -> str:
    return name.strip().lower().replace("-", "_")
