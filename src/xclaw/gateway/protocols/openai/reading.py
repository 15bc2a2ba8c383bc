"""Bodies of requests: what is looked at is checked, what is not known is passed over."""

import json
import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from xclaw.gateway.protocols.openai.refused import Refused

T = TypeVar("T")

_PLACE = re.compile(r" - at `\$\.?(.*)`$")
_MISSING = re.compile(r"missing required field `(\w+)`")
_TEXT_PARTS = frozenset({"text", "input_text", "output_text", "summary_text"})


class Part(msgspec.Struct):
    """One part of a content that is a list."""

    type: str = "text"
    text: str | None = None
    refusal: str | None = None


Content = str | list[Part] | None


class ProgressWish(msgspec.Struct):
    """The field `xclaw` of a request."""

    progress: bool = True
    """Whether the client wants to see what the agents are doing."""


def read_body(raw: bytes, shape: type[T]) -> T:
    """Raises `Refused` that names the field."""
    try:
        try:
            return msgspec.json.decode(raw, type=shape)
        except msgspec.DecodeError:
            if b"\\u" not in raw:
                raise
            return msgspec.json.decode(_without_half_letters(raw), type=shape)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise _unreadable(str(error)) from None


def text_of(content: Content, param: str, *, may_be_empty: bool = True) -> str:
    """The text of a content, its parts joined with nothing between them.

    Raises `Refused` for parts that are no text.
    """
    if content is None or isinstance(content, str):
        return content or ""
    if not content and not may_be_empty:
        raise Refused(f"{param} is an empty list; say something", param=param)
    return "".join(_part_text(part, f"{param}[{index}]") for index, part in enumerate(content))


def refuse_present(fields: Sequence[tuple[str, object]], why: str) -> None:
    """Raises `Refused` for the first of these fields that has a value."""
    for name, value in fields:
        if value:
            raise Refused(f"{name}: {why}", code="unsupported_parameter", param=name)


def _without_half_letters(raw: bytes) -> bytes:
    """JSON without lone surrogates: clients that cut texts cut emoji in two. Raises `ValueError`."""
    return json.dumps(json.loads(raw), ensure_ascii=False).encode("utf-8", "replace")


def _part_text(part: Part, param: str) -> str:
    if part.type in _TEXT_PARTS:
        return part.text or ""
    if part.type == "refusal":
        return part.refusal or ""
    text = f"{param}: content of type {part.type[:60]!r} is not supported; send text"
    raise Refused(text, code="unsupported_content", param=param)


def _unreadable(problem: str) -> Refused:
    place = _PLACE.search(problem)
    param = place[1] if place else ""
    missing = _MISSING.search(problem)
    if missing:
        param = f"{param}.{missing[1]}" if param else missing[1]
    what = _PLACE.sub("", problem)
    where = f" at {param}" if place and param else ""
    text = f"the body is not what it should be{where}: {what}"
    return Refused(text, param=param or None)
