"""Responses: how an answer is written, at once or as a sequence of numbered events."""

from dataclasses import dataclass, field

from xclaw.contracts.messages import ToolCall
from xclaw.gateway.protocols.openai.answer import Answer, fresh_id, now, sse_event
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.gateway.protocols.openai.responses_items import (
    Json,
    call_item,
    message_item,
    reasoning_item,
    repeated_fields,
    summary_part,
    text_part,
    usage_object,
)
from xclaw.gateway.protocols.openai.responses_reading import ResponsesBody
from xclaw.gateway.protocols.openai.transcript import Content, Piece


@dataclass(slots=True)
class _OpenItem:
    """The item that is being streamed."""

    kind: str
    """`reasoning` or `message`."""
    item_id: str
    index: int
    texts: list[str] = field(default_factory=list[str])

    @property
    def text(self) -> str:
        return "".join(self.texts)


class ResponsesForm:
    """Implements `exchange.Form`. Lines about the work are the summaries of reasoning items."""

    def __init__(self, ask: Ask, body: ResponsesBody) -> None:
        self._repeated = repeated_fields(ask, body)
        self._id = fresh_id("resp_")
        self._created = now()
        self._number = -1
        self._items: list[Json] = []
        """Those that are complete."""
        self._open: _OpenItem | None = None

    def document(self, answer: Answer) -> Json:
        if answer.progress:
            self._items.append(reasoning_item(fresh_id("rs_"), answer.progress))
        if answer.text or not answer.calls:
            self._items.append(message_item(fresh_id("msg_"), answer.text, _status(answer)))
        self._items += [call_item(fresh_id("fc_"), call, call.arguments) for call in answer.calls]
        return self._ended(answer)

    def begin(self) -> bytes:
        response = self._response("in_progress")
        return self._event("response.created", response=response) + self._event(
            "response.in_progress", response=response
        )

    def piece(self, piece: Piece) -> bytes:
        if isinstance(piece, Content):
            return self._add("message", piece.text)
        if self._open is not None and self._open.kind == "message":
            return b""  # it would break the answer in two
        return self._add("reasoning", f"{piece.line}\n")

    def end(self, answer: Answer) -> bytes:
        parts = [self._close(_status(answer))]
        if not answer.calls and all(item["type"] != "message" for item in self._items):
            parts += [self._add("message", ""), self._close(_status(answer))]
        parts += [self._call(call) for call in answer.calls]
        ended = self._ended(answer)
        return b"".join([*parts, self._event(f"response.{ended['status']}", response=ended)])

    def fail(self, refused: Refused) -> bytes:
        closed = self._close("incomplete")
        error = {"code": refused.code, "message": str(refused)}
        failed = {**self._response("failed"), "error": error}
        return closed + self._event("response.failed", response=failed)

    # --- items

    def _add(self, kind: str, text: str) -> bytes:
        closed = self._close() if self._open is not None and self._open.kind != kind else b""
        opened = b""
        if self._open is None:
            self._open = _OpenItem(kind, fresh_id("msg_" if kind == "message" else "rs_"), len(self._items))
            opened = self._opening(self._open)
        self._open.texts.append(text)
        return closed + opened + (self._delta(self._open, text) if text else b"")

    def _opening(self, item: _OpenItem) -> bytes:
        if item.kind == "message":
            new, name, part, place = (
                message_item(item.item_id, None, "in_progress"),
                "content",
                text_part(""),
                "content",
            )
        else:
            new, name, part, place = (
                reasoning_item(item.item_id, None),
                "reasoning_summary",
                summary_part(""),
                "summary",
            )
        added = self._event("response.output_item.added", output_index=item.index, item=new)
        where = {**_where(item), f"{place}_index": 0}
        return added + self._event(f"response.{name}_part.added", **where, part=part)

    def _delta(self, item: _OpenItem, text: str) -> bytes:
        if item.kind == "message":
            return self._event(
                "response.output_text.delta", **_where(item), content_index=0, delta=text, logprobs=[]
            )
        return self._event(
            "response.reasoning_summary_text.delta", **_where(item), summary_index=0, delta=text
        )

    def _close(self, status: str = "completed") -> bytes:
        item, self._open = self._open, None
        if item is None:
            return b""
        where, text = _where(item), item.text
        if item.kind == "message":
            whole = message_item(item.item_id, text, status)
            done = self._event(
                "response.output_text.done", **where, content_index=0, text=text, logprobs=[]
            ) + self._event("response.content_part.done", **where, content_index=0, part=text_part(text))
        else:
            whole = reasoning_item(item.item_id, text)
            done = self._event(
                "response.reasoning_summary_text.done", **where, summary_index=0, text=text
            ) + self._event(
                "response.reasoning_summary_part.done", **where, summary_index=0, part=summary_part(text)
            )
        self._items.append(whole)
        return done + self._event("response.output_item.done", output_index=item.index, item=whole)

    def _call(self, call: ToolCall) -> bytes:
        item_id, index = fresh_id("fc_"), len(self._items)
        new, whole = call_item(item_id, call, "", "in_progress"), call_item(item_id, call, call.arguments)
        self._items.append(whole)
        where: Json = {"item_id": item_id, "output_index": index}
        name = "response.function_call_arguments"
        return (
            self._event("response.output_item.added", output_index=index, item=new)
            + self._event(f"{name}.delta", **where, delta=call.arguments)
            + self._event(f"{name}.done", **where, name=call.name, arguments=call.arguments)
            + self._event("response.output_item.done", output_index=index, item=whole)
        )

    # --- the response

    def _ended(self, answer: Answer) -> Json:
        cut = _status(answer) == "incomplete"
        reason = "max_output_tokens" if answer.finish == "length" else answer.finish
        return {
            **self._response("incomplete" if cut else "completed"),
            "completed_at": None if cut else now(),
            "incomplete_details": {"reason": reason} if cut else None,
            "usage": usage_object(answer.usage),
            "xclaw": answer.extension,
        }

    def _response(self, status: str) -> Json:
        return {
            "id": self._id,
            "object": "response",
            "created_at": self._created,
            "completed_at": None,
            "status": status,
            "incomplete_details": None,
            "error": None,
            "output": list(self._items),
            "usage": None,
            **self._repeated,
        }

    def _event(self, kind: str, **fields: object) -> bytes:
        self._number += 1
        return sse_event({"type": kind, "sequence_number": self._number, **fields}, kind)


def _where(item: _OpenItem) -> Json:
    return {"item_id": item.item_id, "output_index": item.index}


def _status(answer: Answer) -> str:
    return "incomplete" if answer.finish in ("length", "content_filter") else "completed"
