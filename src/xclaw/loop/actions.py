"""The JSON action protocol: which part of a reply is the command, if any (SPEC C4).

An action counts only where it stands alone: as the whole reply, on lines of its own, or in a code
block. An object inside a sentence is talk about an action. Of several places the first group of
adjacent actions counts; whatever follows a tool output that the model made up is ignored. When it
is unclear whether an action is meant, the reply is `Malformed` and the model is asked again.
"""

import re
from collections.abc import Collection
from dataclasses import dataclass

from xclaw.loop.action_shapes import Attempt, Calls, Final, Meaning, meaning_of
from xclaw.loop.action_texts import action_schema, render_calls, render_output, syntax_instructions
from xclaw.loop.json_blocks import decode_json
from xclaw.loop.reply_parts import Part, Prose, ends_in_object, made_up_output, split_reply

__all__ = [
    "Actions",
    "Answer",
    "Malformed",
    "action_schema",
    "parse_reply",
    "render_calls",
    "render_output",
    "syntax_instructions",
]

MAX_ACTIONS = 64
"""Of one reply."""

_MADE_UP_BEFORE = re.compile(
    r"^[^\w\n]*+(?:observation|tool[ _]?(?:output|result|response)s?|工具(?:输出|结果|返回))\s*[:：]",
    re.IGNORECASE | re.MULTILINE,
)
_EXAMPLE_BEFORE = re.compile(
    r"""(?:
        \b(?:for\ (?:example|instance)|e\.g\.?|such\ as|(?:an?\ )?example(?:\ (?:call|action|of\ \w+))?)
        |例如|比如|示例|举例|譬如
        |(?:\bnot|n['’]t|\bnever|\bavoid|\bcannot)\ (?:\w+\ ){0,2}?(?:run|use|execute|call|do|try|perform|running|using)
          \b[^.,;\n]{0,30}
        |(?:不要|不会|不能|不应|不该|别|禁止|避免)(?:执行|运行|使用|调用|这样做)[^，。；\n]{0,15}
    )\s*[:：,，]?\s*\Z""",
    re.IGNORECASE | re.VERBOSE,
)
_TAIL_CHARS = 200
_END_CHARS = 20_000
_OTHER_PROTOCOL = re.compile(
    r"""^[ \t]*+(?:
        (?P<markup>Action\ Input[ ]*[:：]|<function=|<invoke[ ]|<tool_call>|(?:```|~~~)tool_code)
        | [^\w\n]{0,4}(?:\w{1,30}\ uses\ )?\[?(?P<name>[\w-]{1,64})\]?[ ]*[:：(][ ]*\{
    )""",
    re.IGNORECASE | re.MULTILINE | re.VERBOSE,
)

_ONLY = "Reply again with ONLY the JSON object of the action, or with your answer in plain text."


@dataclass(frozen=True, slots=True)
class Actions:
    """Calls to run: (tool name, arguments as JSON text), in order. Unknown names are kept as written."""

    calls: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """The model is done and this is its text."""

    text: str


@dataclass(frozen=True, slots=True)
class Malformed:
    """An action that could not be read or may not be meant. `reason` is written for the model."""

    reason: str


def parse_reply(text: str, tools: Collection[str]) -> Actions | Answer | Malformed:
    """What the model's own text asks for. Never raises; takes time linear in the text.

    Only ever give it what a model wrote: never a tool's output, a worker's text or a file.
    """
    if "{" in text:
        reading = _whole(text, tools) or _decide(text, split_reply(text), tools)
        if not isinstance(reading, Answer) or reading.text != text:
            return reading
    return _in_another_protocol(text, tools) or Answer(text)


def _whole(text: str, tools: Collection[str]) -> Actions | Answer | Malformed | None:
    """The reading of a reply that is nothing but valid JSON."""
    stripped = text.strip()
    if not stripped.startswith(("{", "[", '"{')):
        return None
    try:
        value = decode_json(stripped)
        if isinstance(value, str):
            value = decode_json(value)
    except ValueError:
        return None
    return _reading(text, meaning_of(value, tools))


def _reading(text: str, meaning: Meaning) -> Actions | Answer | Malformed:
    match meaning:
        case Calls(calls):
            if len(calls) > MAX_ACTIONS:
                return Malformed(
                    f"The reply has {len(calls)} actions; at most {MAX_ACTIONS} are possible. {_ONLY}"
                )
            return Actions(calls)
        case Final(final):
            return Answer(text if final is None else final)
        case Attempt(reason):
            return Malformed(f"Your JSON was not understood: {reason}. {_ONLY}")
        case None:
            return Answer(text)


def _decide(text: str, parts: list[Part], tools: Collection[str]) -> Actions | Answer | Malformed:
    meanings = [_meaning(part, tools) for part in parts]
    first = next((i for i, meaning in enumerate(meanings) if meaning is not None), None)
    if first is None:
        return _inline(text, parts)
    meaning = meanings[first]
    if not isinstance(meaning, Calls):
        later = any(isinstance(m, Calls) for m in meanings[first + 1 :])
        if later and isinstance(meaning, Final):
            return Malformed(f"The reply has both a final answer and an action: send one of them. {_ONLY}")
        return _reading(text, meaning)
    before = parts[first - 1] if first else None
    if isinstance(before, Prose) and (reason := _unclear_before(before.text)):
        return Malformed(f"{reason} {_ONLY}")
    return _group(text, parts[first:], meanings[first:])


def _group(text: str, parts: list[Part], meanings: list[Meaning]) -> Actions | Answer | Malformed:
    """The first adjacent actions, if what follows leaves no doubt that they are meant."""
    calls: list[tuple[str, str]] = []
    for part, meaning in zip(parts, meanings, strict=True):
        if isinstance(meaning, Calls):
            calls.extend(meaning.calls)
        elif isinstance(meaning, Attempt):
            return _reading(text, meaning)
        elif isinstance(meaning, Final) or not isinstance(part, Prose) or made_up_output(part.text):
            break
        else:
            return Malformed(
                "There is other text after the action, so it is not clear whether you mean it. "
                f"Nothing was run. {_ONLY}"
            )
    return _reading(text, Calls(tuple(calls)))


def _meaning(part: Part, tools: Collection[str]) -> Meaning:
    if isinstance(part, Prose):
        return None
    if part.flaw is not None:
        return Attempt(part.flaw)
    return meaning_of(part.value, tools)


def _unclear_before(prose: str) -> str | None:
    if _MADE_UP_BEFORE.search(prose):
        return "You wrote a tool output yourself; only the runtime does. Nothing was run."
    if _EXAMPLE_BEFORE.search(prose[-_TAIL_CHARS:]):
        return "The action is introduced as an example, so it was not run."
    return None


def _inline(text: str, parts: list[Part]) -> Answer | Malformed:
    last = parts[-1] if parts else None
    if isinstance(last, Prose) and ends_in_object(last.text):
        return Malformed(f"The action stands inside a sentence, so it was not run. {_ONLY}")
    return Answer(text)


def _in_another_protocol(text: str, tools: Collection[str]) -> Malformed | None:
    """A call in the form of another protocol (ReAct, XML, a function call): it is not the answer."""
    for match in _OTHER_PROTOCOL.finditer(text[-_END_CHARS:]):
        if match.group("name") in tools or (match.group("markup") and any(name in text for name in tools)):
            return Malformed(f"That is not how tools are called here, so nothing was run. {_ONLY}")
    return None
