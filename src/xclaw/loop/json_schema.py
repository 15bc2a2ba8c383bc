"""What the library finds when it checks a value against a JSON Schema, bounded in time and text.

Apart from `schema_checks`, which does without it wherever it can.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextvars import ContextVar
from typing import Protocol, cast

import jsonschema.exceptions
import jsonschema.validators
import referencing
import referencing.exceptions

from xclaw.loop.json_blocks import encode_json

MAX_VALIDATORS = 512
MAX_VIOLATIONS = 8
VIOLATION_CHARS = 200
MAX_CHECK_S = 0.5
"""What one check may take. Whoever writes a schema can have a few lines of it take years: thirty definitions,
each of which names the next one twice."""
MAX_COMPARED = 1_000
"""Items of a list that are compared with one another, each with each."""
_VALUES = frozenset({"const", "enum", "default", "examples"})


class _Failure(Protocol):
    validator: str
    validator_value: object
    instance: object
    message: str

    @property
    def json_path(self) -> str: ...


class _Validator(Protocol):
    def iter_errors(self, instance: object) -> Iterator[_Failure]: ...


_extend = cast("Callable[..., object]", jsonschema.validators.extend)  # it has no types
_Keyword = Callable[[object, object, object, object], Iterable[_Failure] | None]


class _TooCostly(Exception):
    """The check is given up."""


_until: ContextVar[float] = ContextVar("_until")
"""When the check that goes on is given up; monotonic, in seconds."""


_validators: dict[int, tuple[dict[str, object], _Validator | None]] = {}


def validator_of(schema: dict[str, object]) -> _Validator | None:
    """Made once for the same object; None for a schema that is itself broken."""
    known = _validators.get(id(schema))
    if known is not None and known[0] is schema:
        return known[1]
    if len(_validators) >= MAX_VALIDATORS:
        _validators.clear()
    validator = _equal_or_made(schema)
    _validators[id(schema)] = (schema, validator)  # holding the schema keeps its id from being reused
    return validator


_of_equal: dict[str, _Validator | None] = {}
"""By the schema's text: every runtime of a process makes the schemas of its own tools anew."""


def _equal_or_made(schema: dict[str, object]) -> _Validator | None:
    try:
        text = json.dumps(schema)
    except (TypeError, ValueError, RecursionError):  # what a user's Python made may be no JSON
        return _made(schema)
    if text in _of_equal:
        return _of_equal[text]
    if len(_of_equal) >= MAX_VALIDATORS:
        _of_equal.clear()
    validator = _of_equal[text] = _made(schema)
    return validator


def failures(value: object, schema: dict[str, object]) -> list[str]:
    """One line each, at most `MAX_VIOLATIONS`; what was found within `MAX_CHECK_S`."""
    validator = validator_of(schema)
    if validator is None:
        return []
    found: list[str] = []
    _until.set(time.monotonic() + MAX_CHECK_S)
    try:
        for failure in validator.iter_errors(value):
            found.append(_described(failure))
            if len(found) == MAX_VIOLATIONS:
                break
    except (
        jsonschema.exceptions.UnknownType,
        referencing.exceptions.Unresolvable,
        re.error,
        RecursionError,
        ArithmeticError,  # numbers that are too large for a keyword's arithmetic
        ValueError,
        _TooCostly,
    ):
        return found
    return found


def _made(schema: dict[str, object]) -> _Validator | None:
    kind = jsonschema.validators.validator_for(schema, jsonschema.validators.Draft202012Validator)
    try:
        kind.check_schema(schema)
        plain = _of_one_dialect(schema)
    except (jsonschema.exceptions.SchemaError, referencing.exceptions.Unresolvable, RecursionError):
        return None
    keywords = cast("dict[str, _Keyword]", kind.VALIDATORS)
    bounded = {name: _bounded(name, keyword) for name, keyword in keywords.items()}
    extended = cast("Callable[..., _Validator]", _extend(kind, bounded))
    # An empty registry: a `$ref` to an address must not be fetched.
    registry: referencing.Registry[object] = referencing.Registry()
    return extended(plain, registry=registry)


def _bounded(name: str, keyword: _Keyword) -> _Keyword:
    """A keyword's check that looks at the clock. Raises `_TooCostly`."""

    def checked(validator: object, value: object, instance: object, schema: object) -> Iterator[_Failure]:
        if time.monotonic() > _until.get():
            raise _TooCostly
        items = len(cast("list[object]", instance)) if isinstance(instance, list) else 0
        if name != "uniqueItems" or items <= MAX_COMPARED:
            yield from keyword(validator, value, cast("object", instance), schema) or ()

    return checked


def _of_one_dialect(schema: object, *, top: bool = True) -> object:
    """The schema without a `$schema` below its top, by ."""
    if isinstance(schema, list):
        return [_of_one_dialect(item, top=False) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value if key in _VALUES else _of_one_dialect(value, top=False)
        for key, value in cast("dict[str, object]", schema).items()
        if top or key != "$schema" or not isinstance(value, str)
    }


def _described(failure: _Failure) -> str:
    place = failure.json_path.removeprefix("$").lstrip(".") or "the arguments"
    message = failure.message
    if len(message) > VIOLATION_CHARS:
        message = f"does not satisfy {failure.validator} {encode_json(failure.validator_value)}"
    return f"{place[:VIOLATION_CHARS]}: {message[:VIOLATION_CHARS]}"
