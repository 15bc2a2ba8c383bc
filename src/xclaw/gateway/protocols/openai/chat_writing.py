"""Chat completions: how an answer is written, at once or as chunks."""

from xclaw.contracts.messages import ToolCall
from xclaw.contracts.usage import Usage
from xclaw.gateway.protocols.openai.answer import Answer, fresh_id, now, sse_event
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.gateway.protocols.openai.transcript import Content, Piece

Json = dict[str, object]

DONE = b"data: [DONE]\n\n"


class ChatForm:
    """Implements `exchange.Form`."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask
        self._id = fresh_id("chatcmpl-")
        self._created = now()

    def document(self, answer: Answer) -> Json:
        message: Json = {
            "role": "assistant",
            "content": answer.text if answer.text or not answer.calls else None,
            "refusal": None,
            "annotations": [],
        }
        if answer.calls:
            message["tool_calls"] = [_call(call) for call in answer.calls]
        if answer.progress:
            message["reasoning_content"] = answer.progress
        choice: Json = {"index": 0, "message": message, "logprobs": None, "finish_reason": answer.finish}
        return {
            **self._envelope("chat.completion"),
            "choices": [choice],
            "usage": usage_fields(answer.usage),
            "xclaw": answer.extension,
        }

    def begin(self) -> bytes:
        return self._chunk({"role": "assistant", "content": ""})

    def piece(self, piece: Piece) -> bytes:
        if isinstance(piece, Content):
            return self._chunk({"content": piece.text})
        return self._chunk({"reasoning_content": f"{piece.line}\n"})

    def end(self, answer: Answer) -> bytes:
        calls = [
            self._chunk({"tool_calls": [{"index": index, **_call(call)}]})
            for index, call in enumerate(answer.calls)
        ]
        parts = [*calls, self._chunk({}, answer.finish, answer)]
        if self._ask.with_usage:
            usage = {"choices": list[object](), "usage": usage_fields(answer.usage)}
            parts.append(sse_event({**self._envelope("chat.completion.chunk"), **usage}))
        return b"".join([*parts, DONE])

    def fail(self, refused: Refused) -> bytes:
        """An error, and no [DONE]: what came before it is not whole."""
        return sse_event({"error": refused.fields})

    def _chunk(self, delta: Json, finish: str | None = None, answer: Answer | None = None) -> bytes:
        choice: Json = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        chunk = {**self._envelope("chat.completion.chunk"), "choices": [choice]}
        if self._ask.with_usage:
            chunk["usage"] = None
        if answer is not None:
            chunk["xclaw"] = answer.extension
        return sse_event(chunk)

    def _envelope(self, kind: str) -> Json:
        return {"id": self._id, "object": kind, "created": self._created, "model": self._ask.model}


def usage_fields(usage: Usage) -> Json:
    """Of the whole tree: what every agent that worked on it has used."""
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }


def _call(call: ToolCall) -> Json:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
