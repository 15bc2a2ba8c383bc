"""From what a model wrote as a tool call to arguments that a tool can take.

What can be read without losing anything is read; everything else is an error that a model can act
on, at most `ERROR_CHARS` long whatever it was sent.
"""

import difflib
import re
import unicodedata
from collections.abc import Collection
from typing import cast

from xclaw.contracts.errors import ToolFailed
from xclaw.loop.json_blocks import decode_json, encode_json
from xclaw.loop.schema_checks import checker_for, signature, violations

ERROR_CHARS = 2_000
MAX_KEPT_CHARS = 200_000
"""Arguments longer than this are kept in the history with their long strings shortened."""
KEPT_STRING_CHARS = 2_000
MAX_NAME_CHARS = 64
MAX_LISTED = 50

_NAME_DEBRIS = re.compile(r"[\s\"'`“”‘’()\[\]{}<>/@*,;:=]+")
_NAME_PREFIX = re.compile(r"^(?:functions?|tools?|default_api)\.", re.IGNORECASE)


def decode_arguments(name: str, text: str, schema: dict[str, object]) -> dict[str, object]:
    """The arguments of a call to tool `name`, checked against its schema.

    Nothing, blank and null mean no arguments. A number written as a string, a list or object written
    as JSON text, and a lone value where a list is asked are converted.

    Raises:
        ToolFailed: they are not JSON, not an object, or break the schema; the text says where.
    """
    arguments = _decoded(name, text)
    checker = checker_for(schema)
    if checker.accepts(arguments):
        return arguments
    arguments = checker.converted(arguments)
    found = violations(arguments, schema)
    if found:
        problems = "\n".join(f"- {problem}" for problem in found)
        call = signature(name, schema)
        raise ToolFailed(_bounded(f"wrong arguments for {name}:\n{problems}\nExpected: {call}"))
    return arguments


def _decoded(name: str, text: str) -> dict[str, object]:
    if not text.strip():
        return {}
    try:
        value = decode_json(text)
        if isinstance(value, str) and value.lstrip().startswith("{"):
            value = decode_json(value)
    except ValueError as failure:
        raise ToolFailed(_invalid(name, text, failure)) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        kind = json_kind(value)
        raise ToolFailed(
            f'the arguments of {name} must be a JSON object such as {{"key": "value"}}, not {kind}'
        )
    return cast(dict[str, object], value)


def _invalid(name: str, text: str, failure: ValueError) -> str:
    shown = text if len(text) <= 200 else f"{text[:100]} [...] {text[-60:]}"
    return _bounded(
        f"invalid JSON in the arguments of {name} ({len(text)} characters): {str(failure)[:200]}. "
        f"The call was not run. Send it again with complete, valid JSON; if it was long, make it shorter. "
        f"Received: {shown}"
    )


def json_kind(value: object) -> str:
    """What a decoded JSON value is, in JSON's own words."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "an array"
        case _:
            return "an object"


def safe_arguments(text: str, limit_chars: int = MAX_KEPT_CHARS) -> str:
    """What the history keeps of a call's arguments: always the JSON text of an object, bounded.

    Malformed arguments become `{}`: the error that answers the call says what was wrong.
    """
    try:
        arguments = _decoded("", text)
    except ToolFailed:
        return "{}"
    if len(text) > limit_chars:
        share = min(KEPT_STRING_CHARS, limit_chars // (2 * len(arguments) or 1))
        kept = encode_json({key: _shortened(value, share) for key, value in arguments.items()})
        return kept if len(kept) <= limit_chars else "{}"
    return encode_json(arguments)


def _shortened(value: object, limit_chars: int) -> object:
    whole = value if isinstance(value, str) else encode_json(value)
    if len(whole) <= limit_chars:
        return value
    return f"{whole[:limit_chars]} [... shortened: {len(whole)} characters]"


def resolve_name(name: str, known: Collection[str]) -> str | None:
    """The known name that a model meant: debris, case, quotes, `-`/`_` and full-width forms folded.

    None when there is none, or more than one.
    """
    if name in known:
        return name
    wanted = _folded(name)
    if not wanted:
        return None
    matches = [candidate for candidate in known if _folded(candidate) == wanted]
    return matches[0] if len(matches) == 1 else None


def _folded(name: str) -> str:
    plain = unicodedata.normalize("NFKC", name[: 4 * MAX_NAME_CHARS])
    plain = _NAME_PREFIX.sub("", _NAME_DEBRIS.sub(" ", plain).strip())
    return re.sub(r"[\s_\-\\]+", "", plain).casefold()


def unknown_tool(name: str, known: Collection[str]) -> str:
    """The error for a call to a tool that does not exist: the real names, near ones first."""
    if not known:
        return _bounded(f"error: there is no tool {_shown(name)}, and you have no tools: answer in text")
    near = difflib.get_close_matches(name[:MAX_NAME_CHARS], known, n=5, cutoff=0.5)
    names = [*near, *sorted(set(known) - set(near))]
    listed = ", ".join(names[:MAX_LISTED]) + (", ..." if len(names) > MAX_LISTED else "")
    what = f"there is no tool {_shown(name)}" if name.strip() else "the call names no tool"
    return _bounded(f"error: {what}. Your tools: {listed}")


def _shown(name: str) -> str:
    return repr(name if len(name) <= MAX_NAME_CHARS else name[:MAX_NAME_CHARS] + "...")


def _bounded(text: str) -> str:
    return text if len(text) <= ERROR_CHARS else text[: ERROR_CHARS - 4] + " ..."
