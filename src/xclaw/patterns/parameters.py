"""JSON Schemas that the patterns' parameters share.

Wider than the documentation says where models are known to differ: lists also as JSON text (SPEC D4),
optional values also null. What is inside is checked by the tool, whose errors say more than a schema's.
"""

TEXT: dict[str, object] = {
    "type": "string",
    "description": (
        "The whole task, self-contained: the worker sees nothing but this text and `inputs`. Goal, material "
        "or its path, constraints, what to deliver."
    ),
}
INPUTS: dict[str, object] = {
    "description": (
        "Paths of delivered artifacts (from artifact_pointers) that the worker may read with view_file. "
        "Cheaper than copying their content. A path that the task names is handed on by itself."
    ),
    "anyOf": [
        {"type": "array", "items": {"type": "string"}},
        {"type": "object"},
        {"type": "string"},
        {"type": "null"},
    ],
}
OUTPUT_SCHEMA: dict[str, object] = {
    "description": "JSON Schema of type object for summary_data, when you need certain fields back.",
    "anyOf": [{"type": "object"}, {"type": "string"}, {"type": "null"}],
}


def list_of(items: dict[str, object], description: str) -> dict[str, object]:
    """A list, as a native array or as JSON text."""
    return {"description": description, "anyOf": [{"type": "array", "items": items}, {"type": "string"}]}


def optional(kinds: list[str], description: str) -> dict[str, object]:
    return {"description": description, "anyOf": [{"type": kind} for kind in [*kinds, "null"]]}
