"""The `output_schema` that a task may carry (SPEC E4), checked before a child is paid for."""

import json
from collections.abc import Iterator

from xclaw.contracts.errors import ToolFailed
from xclaw.patterns.arguments import as_list, as_mapping, shown

MAX_SCHEMA_CHARACTERS = 20_000

_EXAMPLE = '{"type": "object", "properties": {"score": {"type": "integer"}}, "required": ["score"]}'


def schema_argument(value: object) -> dict[str, object] | None:
    """The schema, or None when there is none. Raises `ToolFailed` for what is not one."""
    if value is None or value == "" or value == {}:
        return None
    schema = as_mapping(value)
    if schema is None:
        raise ToolFailed(f"`output_schema` must be a JSON Schema, not {shown(value)}, e.g. {_EXAMPLE}")
    if len(json.dumps(schema, default=repr)) > MAX_SCHEMA_CHARACTERS:
        raise ToolFailed(f"`output_schema` is longer than {MAX_SCHEMA_CHARACTERS} characters; simplify it")
    if schema.get("type") != "object":
        raise ToolFailed(f'`output_schema` must have "type": "object" at its top, e.g. {_EXAMPLE}')
    # Late: it takes 50 ms to load, and few tasks carry a schema.
    from jsonschema import Draft202012Validator, SchemaError  # noqa: PLC0415

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ToolFailed(f"`output_schema` is not a JSON Schema: {error.message[:300]}") from None
    for reference in _references(schema):
        if not reference.startswith("#"):
            raise ToolFailed(f"`output_schema` may only refer to its own parts, not to {shown(reference)}")
    return schema


def _references(value: object) -> Iterator[str]:
    mapping = as_mapping(value) if not isinstance(value, str) else None
    if mapping is not None:
        for key, item in mapping.items():
            if key in ("$ref", "$dynamicRef") and isinstance(item, str):
                yield item
            yield from _references(item)
        return
    for item in as_list(value) or []:
        yield from _references(item)
