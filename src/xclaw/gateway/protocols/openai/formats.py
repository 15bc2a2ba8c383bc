"""Answers that have to be JSON: what the agent is told, and whether it did it."""

from dataclasses import dataclass
from typing import cast

import msgspec

from xclaw.gateway.protocols.openai.refused import Refused, Unmet
from xclaw.loop.json_blocks import decode_json, encode_json
from xclaw.loop.schema_checks import violations

MAX_SCHEMA_CHARACTERS = 20_000
_FENCE = "```"
_NAMED_SCHEMAS = frozenset({"properties", "$defs", "definitions", "dependentSchemas"})
_VALUES = frozenset({"const", "enum", "default", "examples"})
_DESPITE = "A program reads your final answer: whatever is said above of its form, it must be"


class WrittenSchema(msgspec.Struct):
    """`json_schema` of a response format on the chat wire."""

    name: str = ""
    description: str | None = None
    schema: dict[str, object] | None = None
    strict: bool | None = None


class WrittenFormat(msgspec.Struct):
    """A format of either wire; on the responses wire the schema's fields are its own."""

    type: str = "text"
    json_schema: WrittenSchema | None = None
    name: str = ""
    description: str | None = None
    schema: dict[str, object] | None = None
    strict: bool | None = None


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """What the final text has to be."""

    schema: dict[str, object]
    note: str

    def checked(self, text: str) -> str:
        """The answer without what a model wrote around it. Raises `Unmet` when it is not what was asked."""
        bare = _bare(text)
        try:
            value = decode_json(bare)
        except ValueError as error:
            raise _unmet(f"it is no JSON: {error}") from None
        found = violations(value, cast("dict[str, object]", _bounded_checks(self.schema)))
        if found:
            raise _unmet("; ".join(found))
        return bare


def answer_format(written: WrittenFormat | None, param: str) -> AnswerFormat | None:
    """None for plain text. Raises `Refused` for a format that cannot be asked for."""
    if written is None or written.type == "text":
        return None
    if written.type == "json_object":
        return AnswerFormat({"type": "object"}, f"{_DESPITE} one JSON object, with no text around it.")
    if written.type != "json_schema":
        raise Refused(
            f"{param}: {written.type[:60]!r} is not supported", code="unsupported_parameter", param=param
        )
    schema = written.json_schema.schema if written.json_schema is not None else written.schema
    if schema is None:
        raise Refused(f"{param}: json_schema needs a schema", param=param)
    shown = encode_json(schema)
    if len(shown) > MAX_SCHEMA_CHARACTERS:
        text = f"{param}: the schema has {len(shown)} characters; {MAX_SCHEMA_CHARACTERS} are possible"
        raise Refused(text, param=param)
    note = f"{_DESPITE} JSON, with no text around it, that fits this JSON Schema:\n{shown}"
    return AnswerFormat(schema, note)


def _bare(text: str) -> str:
    """Without the fence that models like to put around JSON."""
    text = text.strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE) and "\n" in text:
        text = text[text.index("\n") + 1 : -len(_FENCE)].strip()
    return text


def _unmet(why: str) -> Unmet:
    text = f"the agent's answer is not of the form that was asked for: {why}"
    correction = f"A program could not read that: {why}. Answer again, with the JSON only."
    return Unmet(text, code="format_unmet", correction=correction)


def _bounded_checks(schema: object) -> object:
    """A schema without its regular expressions: one can be written that takes years to match."""
    if isinstance(schema, list):
        return [_bounded_checks(item) for item in cast("list[object]", schema)]
    if not isinstance(schema, dict):
        return schema
    fields = cast("dict[str, object]", schema)
    dropped = {"pattern"}
    if "patternProperties" in fields:
        dropped |= {"patternProperties", "additionalProperties", "unevaluatedProperties"}
    return {
        key: _each(value) if key in _NAMED_SCHEMAS else value if key in _VALUES else _bounded_checks(value)
        for key, value in fields.items()
        if key not in dropped
    }


def _each(schemas: object) -> object:
    if not isinstance(schemas, dict):
        return schemas
    return {name: _bounded_checks(schema) for name, schema in cast("dict[str, object]", schemas).items()}
