"""A conversation as a client sends it, brought into the order that every model takes.

Clients cut conversations, interrupt calls and send results late. Calls without a result get one that
says so; a result without a call cannot be understood, and is refused.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xclaw.contracts.messages import Said, ToolCall
from xclaw.gateway.protocols.openai.refused import Refused

NO_RESULT = "[the client sent no result of this call]"
MAX_ID = 64


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """A tool call as the client gave it back."""

    call_id: str
    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class _OpenCall:
    written_id: str
    call: ToolCall


class ConversationReader:
    """Takes what was said, item by item."""

    def __init__(self) -> None:
        self._items: list[Said] = []
        self._notes: list[str] = []
        self._open: list[_OpenCall] = []
        """Calls of the last assistant item that have no result yet."""
        self._late: list[str] = []
        """What the user said while calls were open; stands after their results."""
        self._ids: set[str] = set()

    @property
    def note(self) -> str:
        """Everything that was said as the system or the developer."""
        return "\n\n".join(self._notes)

    def instruct(self, text: str) -> None:
        if text.strip():
            self._notes.append(text)

    def say_user(self, text: str) -> None:
        if not text.strip():
            return
        if self._open:
            self._late.append(text)
        else:
            self._items.append(Said("user", text))

    def say_assistant(self, text: str, calls: Sequence[WrittenCall] = ()) -> None:
        """Joins the item before it while calls of that one are open: some clients send one answer in pieces."""
        if self._late:
            self._close()
        if not text.strip() and not calls:
            return
        at = self._joined()
        kept = [self._kept(call) for call in calls]
        if at is None:
            self._items.append(Said("assistant", text, tuple(kept)))
            return
        item = self._items[at]
        joined = "\n".join(part for part in (item.text, text) if part)
        self._items[at] = replace(item, text=joined, tool_calls=(*item.tool_calls, *kept))

    def give_result(self, call_id: str, text: str, param: str) -> None:
        """Raises `Refused` when it answers no call."""
        found = next((one for one in self._open if one.written_id == call_id), None)
        if found is None:
            raise Refused(
                f"{param}: {call_id[:MAX_ID]!r} is the id of no tool call before it that has no result yet",
                param=param,
            )
        self._open.remove(found)
        self._items.append(Said("tool", text, call_id=found.call.id, name=found.call.name))
        if not self._open:
            self._close()

    def asked(self, param: str) -> tuple[str, tuple[Said, ...]]:
        """What is to be answered ("" after a tool's result), and what was said before it.

        Raises `Refused` when there is nothing to answer.
        """
        self._close()
        if self._items and self._items[-1].role == "tool":
            return "", tuple(self._items)
        if self._items and self._items[-1].role == "user":
            return self._items[-1].text, tuple(self._items[:-1])
        raise Refused(
            f"{param}: there is nothing to answer. The last one has to be the user's, with text in it, or "
            "the result of a tool call; an answer that was begun cannot be continued",
            param=param,
        )

    def _joined(self) -> int | None:
        """The assistant's item that a further piece of it belongs to."""
        if not self._open:
            return None
        roles = [item.role for item in self._items]
        return len(roles) - 1 - roles[::-1].index("assistant")

    def join_call(self, call: WrittenCall) -> None:
        """A call that is an item of its own: part of the assistant's answer that it follows."""
        if not self._open and not self._late and self._items and self._items[-1].role == "assistant":
            item = self._items[-1]
            self._items[-1] = replace(item, tool_calls=(*item.tool_calls, self._kept(call)))
        else:
            self.say_assistant("", (call,))

    def _kept(self, written: WrittenCall) -> ToolCall:
        """Under an id that no other call of the conversation has: clients and providers reuse theirs."""
        stem = written.call_id[: MAX_ID - 8] or "call"
        call_id, count = written.call_id[:MAX_ID] or stem, 2
        while call_id in self._ids:
            call_id, count = f"{stem}_{count}", count + 1
        self._ids.add(call_id)
        call = ToolCall(call_id, written.name, written.arguments)
        self._open.append(_OpenCall(written.call_id, call))
        return call

    def _close(self) -> None:
        for one in self._open:
            self._items.append(Said("tool", NO_RESULT, call_id=one.call.id, name=one.call.name))
        self._items += [Said("user", text) for text in self._late]
        self._open, self._late = [], []
