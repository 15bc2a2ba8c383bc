"""Checks of JSON values against JSON Schemas, compiled once per schema."""

import math
import re
from dataclasses import dataclass
from typing import cast

from xclaw.loop.json_blocks import decode_json, encode_json

MAX_CHECKERS = 512

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
    "null": (type(None),),
}
_ANNOTATIONS = frozenset({"title", "description", "default", "examples", "type", "$comment"})
_FLAT_KEYS = frozenset(
    {"type", "properties", "required", "additionalProperties", "title", "description", "$schema"}
)
_INTEGER = re.compile(r"[+-]?\d{1,100}\Z")
_BOOLEANS = {"true": True, "false": False}


@dataclass(frozen=True, slots=True)
class Checker:
    """One schema, compiled. `flat` has the types of what needs no validator; None if nothing can go without."""

    schema: dict[str, object]
    properties: dict[str, object]
    required: tuple[str, ...]
    flat: dict[str, tuple[type, ...]] | None
    deep: frozenset[str]
    """The properties that only the validator can judge, where they are there."""
    closed: bool

    def accepts(self, arguments: dict[str, object]) -> bool:
        """Whether they satisfy the schema. A few microseconds for flat schemas."""
        if self.flat is None or not self.deep.isdisjoint(arguments):
            return not violations(arguments, self.schema)
        for name in self.required:
            if name not in arguments:
                return False
        for name, value in arguments.items():
            types = self.flat.get(name)
            if types is None:
                if self.closed:
                    return False
            elif types and not _is_a(value, types):
                return False
        return True

    def converted(self, arguments: dict[str, object]) -> dict[str, object]:
        """The same arguments with what was written in another form than asked brought into it."""
        converted: dict[str, object] = {}
        for name, value in arguments.items():
            known = self._property_named(name, arguments)
            asked = self.properties.get(known)
            types = _types_of(asked)
            if value is None and types and "null" not in types and known not in self.required:
                continue
            converted[known] = _convert(value, types, asked)
        return converted

    def _property_named(self, name: str, arguments: dict[str, object]) -> str:
        if name in self.properties:
            return name
        folded = name.strip().casefold()
        for candidate in self.properties:
            if candidate.casefold() == folded and candidate not in arguments:
                return candidate
        return name


_checkers: dict[int, Checker] = {}


def checker_for(schema: dict[str, object]) -> Checker:
    """The compiled form of a schema: the same object is compiled once."""
    checker = _checkers.get(id(schema))
    if checker is not None and checker.schema is schema:
        return checker
    if len(_checkers) >= MAX_CHECKERS:
        _checkers.clear()
    checker = _checkers[id(schema)] = _compile(schema)
    return checker


def violations(value: object, schema: dict[str, object]) -> list[str]:
    """What in `value` breaks `schema`, one line each, not too many of them.

    A schema that is itself broken is no reason to refuse a call: it finds nothing. One that takes too long
    to check finds what it has found until then.
    """
    # Late: the library takes 50 ms to load, and most processes see no value that needs it.
    from xclaw.loop.json_schema import failures  # noqa: PLC0415

    return failures(value, schema)


def is_broken(schema: dict[str, object]) -> bool:
    """Whether it is no JSON Schema."""
    from xclaw.loop.json_schema import validator_of  # noqa: PLC0415 - as above

    return validator_of(schema) is None


def signature(name: str, schema: dict[str, object]) -> str:
    """`name(path: string, offset?: integer)`"""
    checker = checker_for(schema)
    parameters = [
        f"{key}{'' if key in checker.required else '?'}: {'|'.join(_types_of(value)) or 'any'}"
        for key, value in checker.properties.items()
    ]
    return f"{name}({', '.join(parameters)})"


def _compile(schema: dict[str, object]) -> Checker:
    raw_properties = schema.get("properties")
    properties = cast(dict[str, object], raw_properties) if isinstance(raw_properties, dict) else {}
    raw_required = schema.get("required")
    required = cast(list[object], raw_required) if isinstance(raw_required, list) else []
    flat = _flat_types(schema, properties)
    deep = properties.keys() - flat.keys() if flat is not None else set[str]()
    return Checker(
        schema=schema,
        properties=properties,
        required=tuple(name for name in required if isinstance(name, str)),
        flat=None if deep and is_broken(schema) else flat,
        deep=frozenset(deep),
        closed=schema.get("additionalProperties") is False,
    )


def _flat_types(
    schema: dict[str, object], properties: dict[str, object]
) -> dict[str, tuple[type, ...]] | None:
    """The types of the properties that say no more than that; None where more is said of the whole."""
    if not _FLAT_KEYS.issuperset(schema) or schema.get("additionalProperties", True) not in (True, False):
        return None
    flat: dict[str, tuple[type, ...]] = {}
    for name, asked in properties.items():
        if not isinstance(asked, dict) or not _ANNOTATIONS.issuperset(cast(dict[str, object], asked)):
            continue
        names = _types_of(cast(dict[str, object], asked))
        if all(kind in _PYTHON_TYPES for kind in names):
            flat[name] = tuple(python for kind in names for python in _PYTHON_TYPES[kind])
    return flat


def _is_a(value: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


def _types_of(asked: object) -> tuple[str, ...]:
    """The type names a property schema allows; empty when it does not say."""
    if not isinstance(asked, dict):
        return ()
    fields = cast(dict[str, object], asked)
    kind = fields.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return tuple(name for name in cast(list[object], kind) if isinstance(name, str))
    either = fields.get("anyOf")
    if isinstance(either, list):
        return tuple(name for option in cast(list[object], either) for name in _types_of(option))
    return ()


def _convert(value: object, types: tuple[str, ...], asked: object) -> object:
    if not types or _is_a(value, tuple(t for kind in types for t in _PYTHON_TYPES.get(kind, ()))):
        return value
    for kind in types:
        converted = _as_kind(value, kind)
        if converted is not None:
            return converted
    return value


def _as_kind(value: object, kind: str) -> object:
    """`value` in the form of a JSON type, or None when that would lose or invent something."""
    match kind:
        case "integer" | "number" | "boolean":
            return _as_scalar(value, kind)
        case "array":
            return _as_array(value)
        case "object":
            inner = _from_text(value) if isinstance(value, str) else None
            return cast(object, inner) if isinstance(inner, dict) else None
        case "string":
            return None if value is None else encode_json(value)
        case _:
            return None


def _as_scalar(value: object, kind: str) -> object:
    if isinstance(value, float) and kind == "integer" and value.is_integer():
        return int(value)
    if not isinstance(value, str):
        return None
    text = value.strip()
    if kind == "boolean":
        return _BOOLEANS.get(text.lower())
    if _INTEGER.match(text):
        return int(text)
    if kind == "integer":
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _as_array(value: object) -> object:
    if isinstance(value, str):
        inner = _from_text(value)
        if isinstance(inner, list):
            return cast(object, inner)
        return [cast(object, inner)] if isinstance(inner, dict) else [value]
    return None if value is None else [value]


def _from_text(text: str) -> object:
    try:
        return decode_json(text)
    except ValueError:
        return None
