"""How the JSON action protocol is shown to a model: its rules, past calls, tool outputs, a schema."""

from collections.abc import Mapping, Sequence
from typing import cast

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.models import ToolSpec
from xclaw.loop.arguments import safe_arguments
from xclaw.loop.fences import fence
from xclaw.loop.json_blocks import decode_json, encode_json
from xclaw.loop.schema_checks import signature

_RESERVED = frozenset(
    {"action", "args", "arguments", "action_input", "tool_input", "parameters", "params", "input", "kwargs"}
    | {"thought", "thoughts", "type", "status", "summary_data", "artifact_pointers"}
)
"""Parameters that cannot stand beside "action" without being taken for something else."""

_ALWAYS_SHOWN = frozenset({"content"})
"""What a file holds, also where another parameter may stand for it: an example without it would be followed."""

_PLACEHOLDERS: dict[str, object] = {"integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}

_RULES = """## Tool calls
To call a tool, output ONLY a raw JSON object, with no text around it:
{"action": "<tool>", "<parameter>": <value>, ...}
Calls that do not depend on one another may be sent together, one object per line.
The result comes back as a "tool output:" message. Read it, then go on. Never write a tool output yourself.
Never put a tool call and your final answer in the same reply: they are separate turns.
When you need no tool, reply with the answer itself, without any action object.

Tools:"""


def render_calls(calls: Sequence[ToolCall]) -> str:
    """Past calls as the model should have written them: one JSON object per line."""
    return "\n".join(_render_call(call.name, call.arguments) for call in calls)


def _render_call(name: str, arguments: str) -> str:
    fields = cast(dict[str, object], decode_json(safe_arguments(arguments)))
    if all(key not in _RESERVED and key == key.lower().strip().replace("-", "_") for key in fields):
        return encode_json({"action": name, **fields})
    return encode_json({"action": name, "args": fields})


def render_output(name: str, content: str) -> str:
    """The user message that brings a tool's output: a block that nothing in the output can end."""
    return f"tool output: {name}\n{fence(content)}"


def syntax_instructions(tools: Sequence[ToolSpec]) -> str:
    """The "## Tool calls" section of a system prompt; empty without tools."""
    if not tools:
        return ""
    return "\n".join([_RULES, *(_described(tool) for tool in tools)])


def _described(tool: ToolSpec) -> str:
    properties = _properties(tool.parameters)
    shown = {*_required(tool.parameters), *_ALWAYS_SHOWN}
    sample = {name: _placeholder(name, asked) for name, asked in properties.items() if name in shown}
    if _RESERVED.isdisjoint(name.lower() for name in properties):
        example = json_line({"action": tool.name, **sample})
    else:
        example = json_line({"action": tool.name, "args": sample})
    lines = [f"- {signature(tool.name, tool.parameters)}: {tool.description}", f"  {example}"]
    for name, asked in properties.items():
        description = asked.get("description")
        if isinstance(description, str) and description:
            lines.append(f"    {name}: {description}")
    return "\n".join(lines)


def json_line(value: Mapping[str, object]) -> str:
    """JSON with a space after commas and colons, as people write it."""
    return ", ".join(f"{encode_json(key)}: {encode_json(item)}" for key, item in value.items()).join("{}")


def _placeholder(name: str, asked: dict[str, object]) -> object:
    choices = asked.get("enum")
    if isinstance(choices, list) and choices:
        return cast(list[object], choices)[0]
    kind = asked.get("type")
    return _PLACEHOLDERS.get(kind, f"<{name}>") if isinstance(kind, str) else f"<{name}>"


def _properties(schema: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """The parameters whose schema says something; `true` and `false` are schemas too."""
    properties = schema.get("properties")
    if not isinstance(properties, dict):
        return {}
    fields = cast(dict[str, object], properties)
    return {
        name: cast(dict[str, object], asked) if isinstance(asked, dict) else {}
        for name, asked in fields.items()
    }


def _required(schema: Mapping[str, object]) -> list[str]:
    required = schema.get("required")
    return cast(list[str], required) if isinstance(required, list) else []


def action_schema(tools: Sequence[ToolSpec], final: dict[str, object] | None) -> dict[str, object]:
    """JSON Schema of a whole reply: one action, or the final answer.

    `final` is the JSON Schema of the result form; None for an answer in text.
    """
    definitions: dict[str, object] = {}
    options = [_action_option(tool, definitions) for tool in tools]
    options.append(_final_option(final, definitions))
    schema: dict[str, object] = {"anyOf": options}
    if definitions:
        schema["$defs"] = definitions
    return schema


def _action_option(tool: ToolSpec, definitions: dict[str, object]) -> dict[str, object]:
    parameters = _hoisted(tool.parameters, tool.name, definitions)
    properties = _properties(parameters)
    if not _RESERVED.isdisjoint(name.lower() for name in properties):
        return _object({"action": {"const": tool.name}, "args": parameters}, ["action", "args"])
    return _object({"action": {"const": tool.name}, **properties}, ["action", *_required(parameters)])


def _final_option(final: dict[str, object] | None, definitions: dict[str, object]) -> dict[str, object]:
    if final is None:
        return _object({"action": {"const": "answer"}, "text": {"type": "string"}}, ["action", "text"])
    form = _hoisted(final, "result", definitions)
    properties = _properties(form)
    if not properties:
        return _object({"action": {"const": "result"}, "result": form}, ["action", "result"])
    return _object({"action": {"const": "result"}, **properties}, ["action", *_required(form)])


def _object(properties: dict[str, object], required: list[str]) -> dict[str, object]:
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _hoisted(schema: dict[str, object], name: str, definitions: dict[str, object]) -> dict[str, object]:
    """`schema` with its definitions moved to the root of the whole, where its references look for them."""
    moved = {"$defs": f"#/$defs/{name}.", "definitions": f"#/$defs/{name}."}
    for key in moved:
        inner = schema.get(key)
        if isinstance(inner, dict):
            for label, definition in cast(dict[str, object], inner).items():
                definitions[f"{name}.{label}"] = _with_references(definition, moved)
    rest = {key: item for key, item in schema.items() if key not in moved and key != "$schema"}
    return cast(dict[str, object], _with_references(rest, moved))


def _with_references(value: object, moved: Mapping[str, str]) -> object:
    if isinstance(value, list):
        return [_with_references(item, moved) for item in cast(list[object], value)]
    if not isinstance(value, dict):
        return value
    fields = {key: _with_references(item, moved) for key, item in cast(dict[str, object], value).items()}
    reference = fields.get("$ref")
    if isinstance(reference, str):
        for key, prefix in moved.items():
            if reference.startswith(f"#/{key}/"):
                fields["$ref"] = prefix + reference[len(key) + 3 :]
    return fields
