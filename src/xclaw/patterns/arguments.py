"""Arguments as models write them, turned into values, or into an error that a model can act on (SPEC D4).

A list may come as a native array, as JSON text, as a Python literal, fenced, or encoded twice.
"""

import ast
import json
import re
from collections.abc import Mapping
from typing import cast

from xclaw.contracts.errors import ToolFailed

MAX_LIST_CHARACTERS = 400_000
MAX_NESTING = 32
SHOWN_CHARACTERS = 80

_FENCE = re.compile(r"\A\s*```[\w-]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)
_BRACKETS = {"[": 1, "{": 1, "(": 1, "]": -1, "}": -1, ")": -1}


def text_argument(arguments: Mapping[str, object], name: str, example: str) -> str:
    """A text that must be there and not be blank."""
    value = arguments.get(name)
    if value is None:
        raise ToolFailed(f"`{name}` is missing. Give it as text, e.g. {example}")
    if not isinstance(value, str):
        raise ToolFailed(f"`{name}` must be text, not {shown(value)}, e.g. {example}")
    if not value.strip():
        raise ToolFailed(f"`{name}` is empty. Give it as text, e.g. {example}")
    return value


def optional_text(arguments: Mapping[str, object], name: str) -> str | None:
    """A text, or None when it is not there, null or blank."""
    value = arguments.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise ToolFailed(f"`{name}` must be text, not {shown(value)}. Leave it out if you do not need it")
    return value if value.strip() else None


def whole_number(arguments: Mapping[str, object], name: str, default: int, most: int) -> int:
    """A number from 1 to `most`; as text too."""
    value = arguments.get(name)
    if value is None or value == "":
        return default
    number = _number(value)
    if number is None or number != int(number) or not 1 <= number <= most:
        raise ToolFailed(f"`{name}` must be a whole number from 1 to {most}, not {shown(value)}")
    return int(number)


def optional_seconds(arguments: Mapping[str, object], name: str) -> float | None:
    value = arguments.get(name)
    if value is None or value == "":
        return None
    number = _number(value)
    if number is None or number < 0:
        raise ToolFailed(f"`{name}` must be a number of seconds, not {shown(value)}")
    return number


def _number(value: object) -> float | None:
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e12 or value != value:
        return None
    return float(value)


def list_of_names(value: object, name: str, example: str) -> list[str]:
    """Names in a list, or in a text with commas or lines between them."""
    if value is None:
        raise ToolFailed(f"`{name}` is missing, e.g. {example}")
    parsed = parsed_value(value) if isinstance(value, str) else value
    items = as_list(parsed)
    if items is None and isinstance(value, str):
        if isinstance(parsed, Mapping) or value.strip()[:1] in ("[", "{"):
            raise ToolFailed(f"`{name}` is not a valid list: {shown(value)}, e.g. {example}")
        items = [part for part in re.split(r"[,，、;\n]", str(parsed or value)) if part.strip()]
    if items is None:
        raise ToolFailed(f"`{name}` must be a list of names, not {shown(value)}, e.g. {example}")
    names = [_name(item, f"{name}[{index}]", example) for index, item in enumerate(items)]
    if not names:
        raise ToolFailed(f"`{name}` is empty, e.g. {example}")
    return names


def _name(item: object, place: str, example: str) -> str:
    mapping = as_mapping(item)
    if mapping is not None:
        item = first_of(mapping, ("agent", "name", "role"))
    if not isinstance(item, str) or not item.strip():
        raise ToolFailed(f"`{place}` must be a name, not {shown(item)}, e.g. {example}")
    return item.strip()


def parsed_value(text: str) -> object:
    """What a text stands for: JSON, also fenced or encoded twice, else a Python literal, else None.

    Never executes anything; bounded in length and nesting.
    """
    match = _FENCE.match(text)
    inner = match.group(1) if match else text
    if len(inner) > MAX_LIST_CHARACTERS or _nesting(inner) > MAX_NESTING:
        raise ToolFailed(
            f"the list is too long or nested too deep (at most {MAX_LIST_CHARACTERS} characters and "
            f"{MAX_NESTING} levels); hand long material on as a file, by its path"
        )
    value = _literal(inner.strip())
    return _literal(value.strip()) if isinstance(value, str) else value


def _literal(text: str) -> object:
    try:
        return cast("object", json.loads(text, strict=False))
    except (ValueError, RecursionError):
        pass
    try:
        return cast("object", ast.literal_eval(text))
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        return None


def _nesting(text: str) -> int:
    depth = deepest = 0
    for character in text:
        depth += _BRACKETS.get(character, 0)
        deepest = max(deepest, depth)
    return deepest


def as_list(value: object) -> list[object] | None:
    if isinstance(value, list | tuple | set):
        return list(cast("list[object] | tuple[object, ...] | set[object]", value))
    return None


def as_mapping(value: object) -> dict[str, object] | None:
    """A mapping with text keys, also when it is written as JSON text."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "`"):
        value = parsed_value(value)
    if not isinstance(value, Mapping):
        return None
    return {str(key): item for key, item in cast("Mapping[object, object]", value).items()}


def first_of(mapping: Mapping[str, object], names: tuple[str, ...]) -> object:
    """The value under the first of these names that is there and not null."""
    for name in names:
        if mapping.get(name) is not None:
            return mapping[name]
    return None


def shown(value: object) -> str:
    """A value in an error: short, whatever it is."""
    if value is None:
        return "nothing"
    text = repr(value[:SHOWN_CHARACTERS] if isinstance(value, str) else value)
    return text if len(text) <= SHOWN_CHARACTERS + 2 else f"{text[:SHOWN_CHARACTERS]}..."
