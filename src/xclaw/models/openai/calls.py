"""Tool calls put together from the fragments of a stream."""

from dataclasses import dataclass, field
from typing import cast

import msgspec

from xclaw.contracts.errors import ModelInterrupted
from xclaw.contracts.messages import ToolCall

MAX_CALLS = 128


def _no_parts() -> list[str]:
    return []


@dataclass(slots=True)
class _Slot:
    index: int | None
    id: str = ""
    name: str = ""
    parts: list[str] = field(default_factory=_no_parts)

    def add_name(self, name: str) -> None:
        """Names come whole, in pieces, or whole with every fragment."""
        if name != self.name and not self.parts:
            self.name += name

    def add_arguments(self, fragment: str) -> None:
        if self.parts and fragment.startswith("{"):
            so_far = "".join(self.parts)
            if so_far == "{}":  # a placeholder before the real arguments
                self.parts.clear()
            elif so_far == fragment and _is_json(so_far):  # the whole again, at the end
                return
        self.parts.append(fragment)


class CallAssembler:
    """Groups fragments by `index`, then by id, then by what went before; keeps the provider's order.

    Raises `ModelInterrupted` for more than `MAX_CALLS` calls. Never raises for odd values: what is not
    understood is left out.
    """

    __slots__ = ("_slots", "size")

    def __init__(self) -> None:
        self._slots: list[_Slot] = []
        self.size = 0
        """Characters so far."""

    def __bool__(self) -> bool:
        return bool(self._slots)

    def add(self, fragments: object) -> None:
        """One delta's `tool_calls`."""
        if isinstance(fragments, dict):
            fragments = [cast("object", fragments)]
        if not isinstance(fragments, list):
            return
        for position, fragment in enumerate(cast("list[object]", fragments)):
            if isinstance(fragment, dict):
                self._add_one(cast("dict[str, object]", fragment), position)

    def add_legacy(self, function_call: object) -> None:
        """One delta's `function_call`, the single call of the wire's first version."""
        if isinstance(function_call, dict):
            self._add_one({"index": 0, "function": cast("object", function_call)}, 0)

    def calls(self) -> tuple[ToolCall, ...]:
        slots = [slot for slot in self._slots if slot.name or slot.parts]
        if all(slot.index is not None for slot in slots):
            slots.sort(key=lambda slot: slot.index or 0)
        return tuple(
            ToolCall(slot.id or f"call_{position}", slot.name, "".join(slot.parts))
            for position, slot in enumerate(slots)
        )

    def _add_one(self, fragment: dict[str, object], position: int) -> None:
        function = fragment.get("function")
        if not isinstance(function, dict):
            function = fragment  # some servers leave the wrapper out
        function = cast("dict[str, object]", function)
        name = _text(function.get("name"))
        call_id = _text(fragment.get("id"))
        slot = self._slot(_index(fragment.get("index")), call_id, name, position)
        slot.id = slot.id or call_id
        if name:
            slot.add_name(name)
        arguments = function.get("arguments")
        if isinstance(arguments, str):
            if arguments:
                slot.add_arguments(arguments)
                self.size += len(arguments)
        elif isinstance(arguments, dict | list):
            slot.parts = [_encoded(cast("object", arguments))]
            self.size += len(slot.parts[0])
        self.size += len(name)

    def _slot(self, index: int | None, call_id: str, name: str, position: int) -> _Slot:
        found = self._by_index(index, call_id, name) if index is not None else None
        if index is None:
            found = self._by_order(call_id, name, position)
        if found is None:
            if len(self._slots) >= MAX_CALLS:
                raise ModelInterrupted(f"the model asked for more than {MAX_CALLS} tool calls at once")
            found = _Slot(index)
            self._slots.append(found)
        return found

    def _by_index(self, index: int, call_id: str, name: str) -> _Slot | None:
        for slot in reversed(self._slots):
            if slot.index == index:
                other = bool(call_id and slot.id and call_id != slot.id)
                # Servers that number every call 0 begin the next one with a new id and a name.
                return None if other and name and slot.parts else slot
        last = self._slots[-1] if self._slots else None
        if last is None or last.index is not None:
            return None
        return last if call_id == last.id or not (call_id or name) else None

    def _by_order(self, call_id: str, name: str, position: int) -> _Slot | None:
        if not self._slots:
            return None
        last = self._slots[-1]
        if call_id:
            known = next((slot for slot in reversed(self._slots) if slot.id == call_id), None)
            return known or (last if not last.id and not name else None)
        begins_another = name and (last.parts or position > 0)
        return None if begins_another else last


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _index(value: object) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 6:
        return int(value)
    return None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return False
    return True


def _encoded(value: object) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (msgspec.MsgspecError, ValueError, TypeError, RecursionError):
        return ""
