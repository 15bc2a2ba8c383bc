"""The end of a structured task: the result form, and whether what it claims is true (SPEC E1, E4)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal, cast

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.loop.action_shapes import is_result_form
from xclaw.loop.effects import effects_claimed
from xclaw.loop.json_blocks import Block, BlockReader, decode_json, encode_json
from xclaw.loop.reply_parts import Value, object_starts, split_reply
from xclaw.loop.schema_checks import violations

__all__ = [
    "RESULT_SCHEMA",
    "Accepted",
    "AskAgain",
    "effects_claimed",
    "read_result",
    "result_instructions",
    "result_schema",
]

MAX_POINTERS = 200
REASON_CHARS = 2_000
_PATH_CHARS = 300

RESULT_SCHEMA: dict[str, object] = {
    "type": "object",
    "properties": {
        "status": {"type": "string", "enum": ["success", "error"]},
        "summary_data": {"type": "object"},
        "artifact_pointers": {"type": "object", "additionalProperties": {"type": "string"}},
    },
    "required": ["status", "summary_data", "artifact_pointers"],
    "additionalProperties": False,
}
"""The form as JSON Schema; `result_schema` puts a task's own `output_schema` in its place."""

_FORM = '{"status":"success"|"error","summary_data":{...},"artifact_pointers":{"<name>":"<path>"}}'
_SUCCESS = frozenset({"success", "succeeded", "successful", "ok", "done", "complete", "completed"})
_ERROR = frozenset({"error", "failure", "failed", "fail"})
_ENVELOPES = ("result", "output", "args", "arguments", "action_input", "parameters")


@dataclass(frozen=True, slots=True)
class Accepted:
    """A result in the right form, every pointer of it verified."""

    summary_data: object
    pointers: dict[str, Pointer]
    status: Literal["success", "error"]
    text: str
    """The reply as the model wrote it."""


@dataclass(frozen=True, slots=True)
class AskAgain:
    """The form was missed or claims what is not so. `reason` is written for the model."""

    reason: str


def result_schema(output_schema: dict[str, object] | None) -> dict[str, object]:
    """The form as JSON Schema, with `output_schema` as the shape of summary_data when there is one."""
    if output_schema is None:
        return RESULT_SCHEMA
    properties = cast(dict[str, object], RESULT_SCHEMA["properties"])
    definitions = {key: output_schema[key] for key in ("$defs", "definitions") if key in output_schema}
    shape = {key: item for key, item in output_schema.items() if key not in definitions and key != "$schema"}
    return {**RESULT_SCHEMA, "properties": {**properties, "summary_data": shape}, **definitions}


def result_instructions(output_schema: dict[str, object] | None) -> str:
    """The "## Returning results" section of a worker's system prompt."""
    lines = [
        "## Returning results",
        "When the task is done, output ONLY this JSON, with no text around it:",
        _FORM,
        "",
        "Rules:",
        '- status: "success" only if the task is really done; otherwise "error", and say why in summary_data.',
        "- summary_data: decisions and metadata only: scores, flags, key findings, assumptions."
        " No large texts.",
        "- Files (code, documents, reports, diffs): deliver them first, then put the confirmed path in"
        " artifact_pointers.",
        '- artifact_pointers: only paths that deliver confirmed with "delivered: <path>". Never invent one.',
        "- If nothing was delivered, artifact_pointers is {}.",
    ]
    if output_schema is not None:
        lines.append(f"- summary_data must satisfy this JSON Schema: {encode_json(output_schema)}")
    return "\n".join(lines)


def read_result(
    text: str,
    verify: Callable[[str], Pointer | None],
    output_schema: dict[str, object] | None,
) -> Accepted | AskAgain:
    """The result in a worker's last reply, wherever in it the form stands; the last one counts.

    `verify` answers the delivered artifact at a path, re-hashed, or None; it may raise `ToolFailed`.
    """
    form = _find_form(text)
    if form is None:
        what = "The reply is empty." if not text.strip() else "The reply is not in the result form."
        return AskAgain(f"{what} End the task with ONLY this JSON: {_FORM}")
    status = _status(form.get("status"))
    if status is None:
        shown = encode_json(form.get("status"))[:60]
        return AskAgain(f'"status" must be "success" or "error", not {shown}. Send the whole JSON again.')
    summary = _summary(form.get("summary_data"), output_schema)
    problems = _summary_problems(summary, status, output_schema)
    pointers, refused = _pointers(form.get("artifact_pointers"), verify)
    if problems or refused:
        listed = "\n".join(f"- {problem}" for problem in [*problems, *refused])
        reason = f"The result was refused:\n{listed}"
        return AskAgain(f"{reason[:REASON_CHARS]}\nCorrect this, then send the whole JSON again: {_FORM}")
    return Accepted(summary, pointers, status, text)


def _find_form(text: str) -> dict[str, object] | None:
    candidates: list[object] = []
    try:
        candidates.append(decode_json(text.strip()))
    except ValueError:
        parts = split_reply(text)
        candidates = [part.value for part in parts if isinstance(part, Value)]
        reader = BlockReader(text)
        for start in object_starts(text)[-8:]:
            block = reader.read(start)
            if isinstance(block, Block):
                candidates.append(block.value)
    forms = [form for form in map(_as_form, candidates) if form is not None]
    return forms[-1] if forms else None


def _as_form(value: object) -> dict[str, object] | None:
    """The form itself, or inside one of the envelopes that models put round it."""
    if isinstance(value, list) and len(cast(list[object], value)) == 1:
        value = cast(list[object], value)[0]
    if not isinstance(value, dict):
        return None
    fields = {str(key).strip().lower(): item for key, item in cast(dict[object, object], value).items()}
    if is_result_form(fields):
        return fields
    for key in _ENVELOPES:
        inner = fields.get(key)
        if isinstance(inner, dict):
            inner_fields = cast(dict[str, object], inner)
            if is_result_form(inner_fields):
                return inner_fields
    return None


def _status(value: object) -> Literal["success", "error"] | None:
    word = value.strip().lower() if isinstance(value, str) else ""
    if word in _SUCCESS:
        return "success"
    return "error" if word in _ERROR else None


def _summary(value: object, output_schema: dict[str, object] | None) -> object:
    """summary_data; JSON text in its place is read when the task's schema wants something else."""
    if output_schema is not None and isinstance(value, str) and violations(value, output_schema):
        try:
            return decode_json(value)
        except ValueError:
            return value
    return value


def _summary_problems(
    summary: object, status: Literal["success", "error"], output_schema: dict[str, object] | None
) -> list[str]:
    if status == "error":
        return []
    if summary is None or (isinstance(summary, str) and not summary.strip()):
        return ["summary_data is empty: say what was found or done"]
    if output_schema is None:
        return []
    found = violations(summary, output_schema)
    return [f"summary_data does not satisfy the task's schema: {violation}" for violation in found]


def _pointers(value: object, verify: Callable[[str], Pointer | None]) -> tuple[dict[str, Pointer], list[str]]:
    """Verified pointers by name, each file once, and what was wrong with the others."""
    named = _named_paths(value)
    if named is None:
        return {}, ['artifact_pointers must be an object of names and paths: {"<name>": "<path>"}']
    if len(named) > MAX_POINTERS:
        return {}, [f"artifact_pointers has {len(named)} entries; at most {MAX_POINTERS} are possible"]
    pointers: dict[str, Pointer] = {}
    refused: list[str] = []
    for name, path in named:
        pointer, problem = _verified(path, verify)
        if pointer is None:
            refused.append(problem)
        elif all(pointer.path != known.path for known in pointers.values()):
            pointers[_free_name(name or PurePosixPath(pointer.path).name, pointers)] = pointer
    return pointers, refused


def _verified(path: object, verify: Callable[[str], Pointer | None]) -> tuple[Pointer | None, str]:
    if not isinstance(path, str) or not path.strip():
        return None, f"artifact_pointers: {encode_json(path)[:_PATH_CHARS]} is not a path"
    plain = path.strip().removeprefix("delivered:").strip()
    why = "no file was delivered there; deliver it first, or leave it out"
    try:
        pointer = verify(plain)
    except (ToolFailed, ValueError) as failure:
        pointer, why = None, str(failure)[:_PATH_CHARS]
    return pointer, f"artifact_pointers: {plain[:_PATH_CHARS]!r}: {why}"


def _named_paths(value: object) -> list[tuple[str, object]] | None:
    """(name or "", path) from a mapping, a list of paths or objects, or one path; None if it is neither."""
    match value:
        case None:
            return []
        case str():
            return [("", value)] if value.strip() else []
        case dict():
            fields = cast(dict[str, object], value)
            if isinstance(fields.get("path"), str):
                return [_from_object(fields)]
            return [
                (name, _from_object(cast(dict[str, object], item))[1] if isinstance(item, dict) else item)
                for name, item in fields.items()
                if item is not None
            ]
        case list():
            return [
                _from_object(cast(dict[str, object], item)) if isinstance(item, dict) else ("", item)
                for item in cast(list[object], value)
            ]
        case _:
            return None


def _from_object(fields: dict[str, object]) -> tuple[str, object]:
    name = fields.get("name")
    path = next((fields[key] for key in ("path", "pointer", "file", "uri") if key in fields), None)
    if path is None and len(fields) == 1:
        [(name, path)] = fields.items()
    return (name if isinstance(name, str) else ""), path


def _free_name(name: str, taken: dict[str, Pointer]) -> str:
    free, count = name, 2
    while free in taken:
        free, count = f"{name} ({count})", count + 1
    return free
