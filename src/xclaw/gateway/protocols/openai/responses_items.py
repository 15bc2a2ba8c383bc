"""Responses: the objects that answers are made of."""

from collections.abc import Sequence

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.usage import Usage
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.formats import WrittenFormat
from xclaw.gateway.protocols.openai.responses_reading import ResponsesBody
from xclaw.gateway.protocols.openai.tools import WrittenChoice

Json = dict[str, object]


def text_part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def message_item(item_id: str, text: str | None, status: str = "completed") -> Json:
    """`None`: nothing has been said yet."""
    content = [] if text is None else [text_part(text)]
    return {"id": item_id, "type": "message", "status": status, "role": "assistant", "content": content}


def summary_part(text: str) -> Json:
    return {"type": "summary_text", "text": text}


def reasoning_item(item_id: str, text: str | None) -> Json:
    """Lines about the work."""
    return {"id": item_id, "type": "reasoning", "summary": [] if text is None else [summary_part(text)]}


def call_item(item_id: str, call: ToolCall, arguments: str, status: str = "completed") -> Json:
    return {
        "id": item_id,
        "type": "function_call",
        "status": status,
        "call_id": call.id,
        "name": call.name,
        "arguments": arguments,
    }


def usage_object(usage: Usage) -> Json:
    """Of the whole tree: what every agent that worked on it has used."""
    return {
        "input_tokens": usage.input_tokens,
        "input_tokens_details": {"cached_tokens": usage.cached_tokens},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.total_tokens,
    }


def repeated_fields(ask: Ask, body: ResponsesBody) -> Json:
    """What an answer repeats of its request. Sampling is the models' own: the values are OpenAI's defaults."""
    return {
        "model": ask.model,
        "previous_response_id": None,
        "instructions": body.instructions,
        "tools": _tools(ask),
        "tool_choice": _choice(body.tool_choice),
        "truncation": "disabled",
        "parallel_tool_calls": body.parallel_tool_calls is not False,
        "text": {"format": _format(body.text.format if body.text else None)},
        "top_p": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "top_logprobs": 0,
        "temperature": 1.0,
        "reasoning": {"effort": None, "summary": None},
        "max_output_tokens": body.max_output_tokens,
        "max_tool_calls": None,
        "store": False,
        "background": False,
        "service_tier": "default",
        "metadata": body.metadata or {},
        "safety_identifier": body.safety_identifier,
        "prompt_cache_key": body.prompt_cache_key,
    }


def _tools(ask: Ask) -> Sequence[Json]:
    return [
        {
            "type": "function",
            "name": spec.name,
            "description": spec.description,
            "parameters": spec.parameters,
            "strict": False,
        }
        for spec in ask.tools.specs
    ]


def _choice(choice: str | WrittenChoice | None) -> str | Json:
    if isinstance(choice, WrittenChoice):
        if choice.type == "function":
            return {"type": "function", "name": choice.chosen}
        return "required" if choice.mode == "required" else "auto"
    return choice or "auto"


def _format(written: WrittenFormat | None) -> Json:
    if written is None or written.type != "json_schema":
        return {"type": written.type if written else "text"}
    return {
        "type": "json_schema",
        "name": written.name,
        "description": written.description,
        "schema": written.schema,
        "strict": bool(written.strict),
    }
