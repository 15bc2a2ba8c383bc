"""A child's `Result` as the small record that its parent's model reads."""

import json
from collections.abc import Mapping

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.results import Result

TEXT_CHARACTERS = 200_000
"""Of a text in a record. The conversation's own limit is lower, and spills the rest to a file."""
REASON_CHARACTERS = 2_000


def render_result(result: Result, note: str | None = None) -> str:
    """JSON with status, outcome, summary_data and artifact_pointers (name to path), and the branch, if there is one.

    `reason` is there when the outcome needs one, `text` when the child gave no structured result, or
    was stopped with something half done. What is large comes last, so that a cut never hides a pointer.
    """
    record: dict[str, object] = {
        "status": "success" if result.succeeded else "error",
        "outcome": result.outcome,
    }
    if result.reason or not result.succeeded:
        record["reason"] = shorten(result.reason or "it gave no reason", REASON_CHARACTERS)
    if note:
        record["note"] = note
    if result.branch:
        record["branch"] = result.branch
    record["artifact_pointers"] = pointer_paths(result.pointers)
    record["summary_data"] = {} if result.summary_data is None else result.summary_data
    if result.text and (not result.structured or not result.succeeded):
        if not result.structured:
            record["structured"] = False
        record["text"] = shorten(result.text, TEXT_CHARACTERS)
    return _encode(record)


def pointer_paths(pointers: Mapping[str, Pointer]) -> dict[str, str]:
    return {name: pointer.path for name, pointer in pointers.items()}


def plain_output(result: Result) -> str:
    """What a child said, as text: its answer, else its data, else the paths of what it delivered."""
    if result.text.strip():
        return result.text
    if result.summary_data not in (None, {}, [], ""):
        return result.summary_data if isinstance(result.summary_data, str) else _encode(result.summary_data)
    return "\n".join(pointer_paths(result.pointers).values())


def failure_reason(result: Result) -> str:
    """One line on why a child failed."""
    reason = " ".join(result.reason.split())
    return shorten(f"{result.outcome}: {reason}" if reason else result.outcome, REASON_CHARACTERS)


def shorten(text: str, characters: int) -> str:
    """The text, or its beginning and a mark of how much is left out."""
    if len(text) <= characters:
        return text
    return f"{text[:characters]} [... {len(text) - characters} more characters]"


def fenced(text: str, label: str) -> str:
    """Text as a data block that nothing inside it can close."""
    longest = run = 0
    for character in text:
        run = run + 1 if character == "`" else 0
        longest = max(longest, run)
    fence = "`" * max(3, longest + 1)
    return f"{fence} {label}\n{text}\n{fence}"


def _encode(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=repr)
    return text.encode("utf-8", "replace").decode("utf-8")
