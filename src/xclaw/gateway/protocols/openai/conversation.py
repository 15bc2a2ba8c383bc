"""A conversation as a client sends it, brought into the order that every model takes.

Clients cut conversations, interrupt calls and send results late. Calls without a result get one that
says so; a result without a call cannot be understood, and is refused.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

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


@dataclass(slots=True)
class _Answer:
    """The assistant's last item, as long as pieces of it may come."""

    at: int
    texts: list[str]
    calls: list[ToolCall]

    @property
    def said(self) -> Said:
        return Said("assistant", "\n".join(filter(None, self.texts)), tuple(self.calls))


class ConversationReader:
    """Takes what was said, item by item. Takes as long as there are items: a request may hold thousands."""

    def __init__(self) -> None:
        self._items: list[Said] = []
        self._notes: list[str] = []
        self._answer = _Answer(-1, [], [])
        self._open: dict[str, ToolCall] = {}
        """Calls of the last assistant item that have no result yet, by their ids here."""
        self._written: dict[str, deque[str]] = {}
        """Their ids here, by those that the client wrote."""
        self._late: list[str] = []
        """What the user said while calls were open; stands after their results."""
        self._ids: set[str] = set()
        self._counts: dict[str, int] = {}
        """By the stem of an id: the next number to tell calls apart by."""

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
        if not self._open:
            self._seal()
            self._answer = _Answer(len(self._items), [], [])
            self._items.append(Said("assistant", ""))
        self._answer.texts.append(text)
        self._answer.calls += [self._kept(call) for call in calls]

    def give_result(self, call_id: str, text: str, param: str) -> None:
        """Raises `Refused` when it answers no call."""
        found = self._written.get(call_id)
        if not found:
            raise Refused(
                f"{param}: {call_id[:MAX_ID]!r} is the id of no tool call before it that has no result yet",
                param=param,
            )
        call = self._open.pop(found.popleft())
        self._items.append(Said("tool", text, call_id=call.id, name=call.name))
        if not self._open:
            self._close()

    def asked(self, param: str) -> tuple[str, tuple[Said, ...]]:
        """What is to be answered ("" after a tool's result), and what was said before it.

        Raises `Refused` when there is nothing to answer.
        """
        self._close()
        self._seal()
        if self._items and self._items[-1].role == "tool":
            return "", tuple(self._items)
        if self._items and self._items[-1].role == "user":
            return self._items[-1].text, tuple(self._items[:-1])
        raise Refused(
            f"{param}: there is nothing to answer. The last one has to be the user's, with text in it, or "
            "the result of a tool call; an answer that was begun cannot be continued",
            param=param,
        )

    def join_call(self, call: WrittenCall) -> None:
        """A call that is an item of its own: part of the assistant's answer that it follows."""
        if not self._open and not self._late and self._items and self._items[-1].role == "assistant":
            self._answer.calls.append(self._kept(call))
        else:
            self.say_assistant("", (call,))

    def _kept(self, written: WrittenCall) -> ToolCall:
        """Under an id that no other call of the conversation has: clients and providers reuse theirs."""
        stem = written.call_id[: MAX_ID - 8] or "call"
        call_id, count = written.call_id[:MAX_ID] or stem, self._counts.get(stem, 2)
        while call_id in self._ids:
            call_id, count = f"{stem}_{count}", count + 1
        self._counts[stem] = count
        self._ids.add(call_id)
        call = ToolCall(call_id, written.name, written.arguments)
        self._open[call_id] = call
        self._written.setdefault(written.call_id, deque()).append(call_id)
        return call

    def _seal(self) -> None:
        """The assistant's last item has all its pieces."""
        if self._answer.at >= 0:
            self._items[self._answer.at] = self._answer.said

    def _close(self) -> None:
        for call in self._open.values():
            self._items.append(Said("tool", NO_RESULT, call_id=call.id, name=call.name))
        self._items += [Said("user", text) for text in self._late]
        self._open, self._written, self._late = {}, {}, []
