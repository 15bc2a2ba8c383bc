"""Splits a reply into prose and the JSON values that stand alone in it, in time linear in its length."""

import re
from dataclasses import dataclass

from xclaw.loop.json_blocks import Block, BlockReader, Flaw

MAX_PARTS = 200
"""Values looked at in one reply; what comes after them is prose."""

_TAG = r"</?(?:tool_calls?|function_calls?|tool_use|tool_code|action|actions|json)>|<\|[\w▁]{1,40}\|>"
_LABEL = (
    r"(?:\*\*)?(?:next[ ]action|action(?:[ ]input)?|tool[ _]?calls?|function[ _]?call|call|json"
    r"|操作|行动|动作|工具调用|调用工具|调用)(?:\*\*)?[ \t]*[:：](?:\*\*)?|\[TOOL_CALLS\]"
)
_START = re.compile(
    rf"^(?:[ \t\ufeff]|{_TAG})*+(?:{_LABEL})?[ \t]*+(?:(?P<fence>`{{3,}}|~{{3,}})|(?P<open>[{{\[]))",
    re.MULTILINE | re.IGNORECASE,
)
_INFO = re.compile(r"[ \t]*[\w+.-]*[ \t\r]*(?:\n\s*+(?:(?://|\#)[^\n]*\n\s*+)*+)?(?=[{\[])")
_BETWEEN = re.compile(rf"(?:\s|{_TAG}|[,;，；]|(?://|\#)[^\n]*(?=\n))*+")
_AFTER = re.compile(rf"(?:[ \t\r,;.。，；}}\])]|{_TAG})*+(?:\n|\Z)", re.IGNORECASE)
_IN_FENCE_AFTER = re.compile(rf"(?:[\s,;}}\])]|{_TAG}|(?://|\#)[^\n]*(?=\n))*+", re.IGNORECASE)
_OBSERVATION = re.compile(
    r"""\W*+(?:
        (?:observation|(?:tool|function|call|action)[ _-]?(?:output|result|response|observation)s?
          |(?:the\ )?(?:result|output|response|returned|return\ value|user|human|system)s?)\s*[\])*]*\s*[:：=\n>]
        |(?:工具|执行|调用|函数|命令)?(?:输出|结果|返回|响应|观察|返回值|返回结果|输出结果|用户)\s*[\]】*]*\s*[:：\n]
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_KEYS = r"(?:action|actions|tool_calls?|function_call|tool_name)"
_ACTION_KEY = re.compile(
    rf"""["'“]{_KEYS}["'”]\s*[:：]|\{{\s*{_KEYS}\s*[:：]"""
    r"""|["']name["']\s*:\s*["'][\w.-]{1,64}["']\s*,\s*["'](?:args|arguments|parameters)["']\s*:""",
    re.IGNORECASE,
)
_INLINE = re.compile(rf"""\{{\s*["'“]?{_KEYS}["'”]?\s*[:：]""", re.IGNORECASE)
_NOTHING_AFTER = re.compile(r"""(?:[\s}\])"'.。!！,;*>]|`(?!``))*+\Z""")
_RESULT_HEAD = re.compile(
    r"""\{\s*["'“]?(?:status|summary_data|artifact_pointers|action|result)["'”]?\s*[:：]""", re.IGNORECASE
)
_WORD = re.compile(r"[^\W_]")
_THINKING = re.compile(r"\s*<(think|thinking|reasoning)>", re.IGNORECASE)
_HEAD_CHARS = 2_000
_FLAWS: dict[Flaw, str] = {
    "unfinished": "it ends in the middle (cut off, or a closing quote or bracket is missing)",
    "invalid": "it is not valid JSON",
}


@dataclass(frozen=True, slots=True)
class Prose:
    """Text, with whatever objects and code blocks are only quoted in it."""

    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """A JSON value that stands alone; `flaw` says what is wrong when it could not be read."""

    value: object
    flaw: str | None = None


Part = Prose | Value


@dataclass(frozen=True, slots=True)
class _Found:
    value: Value
    start: int
    end: int
    exact: bool = True


def made_up_output(text: str, position: int = 0) -> bool:
    """Whether what follows is a tool output or another speaker's turn, as written by a model."""
    return _OBSERVATION.match(text, position) is not None


def split_reply(text: str) -> list[Part]:
    """The parts in order, never two `Prose` in a row, none of them without a word."""
    return _Splitter(text).parts()


def ends_in_object(text: str) -> bool:
    """Whether the last thing in a text is an object that looks like an action."""
    starts = [match.start() for match in _INLINE.finditer(text)]
    if not starts:
        return False
    block = BlockReader(text).read(starts[-1])
    if isinstance(block, Block):
        return _NOTHING_AFTER.match(text, block.end) is not None
    return block == "unfinished"


def object_starts(text: str) -> list[int]:
    """Where objects start, in a sentence or not, whose first key belongs to the result form."""
    return [match.start() for match in _RESULT_HEAD.finditer(text)]


class _Splitter:
    def __init__(self, text: str) -> None:
        self._text = text
        self._reader = BlockReader(text)
        self._parts: list[Part] = []
        self._prose_from = 0

    def parts(self) -> list[Part]:
        position = self._after_thinking()
        while self._goes_on() and (start := _START.search(self._text, position)):
            position = self._fence(start) if start.group("fence") else self._bare(start)
        self._add_prose(len(self._text))
        return self._parts

    def _goes_on(self) -> bool:
        return len(self._parts) < MAX_PARTS and not self._reader.gave_up

    def _after_thinking(self) -> int:
        """Where a reply begins whose model shows its reasoning: what it thinks is no command."""
        opening = _THINKING.match(self._text)
        if opening is None:
            return 0
        closing = f"</{opening.group(1)}>"
        end = self._text.find(closing, opening.end())
        self._prose_from = len(self._text) if end < 0 else end + len(closing)
        return self._prose_from

    def _add_prose(self, end: int) -> None:
        text = self._text[self._prose_from : end]
        if not _BETWEEN.fullmatch(text) and _WORD.search(text):
            self._parts.append(Prose(text))

    def _take(self, start: int, values: list[Value], end: int) -> int:
        self._add_prose(start)
        self._parts.extend(values)
        self._prose_from = end
        return end

    def _bare(self, start: re.Match[str]) -> int:
        """Values on lines of their own."""
        found = self._values(start.start("open"))
        while found:
            last = found[-1]
            end = self._end_of_line(last.end)
            if end is not None:
                return self._take(start.start(), [item.value for item in found], end)
            if not last.exact and _looks_like_action(self._text, last.start):
                # Where it ends was a guess, and a wrong one: this is an action with a flaw, not a sentence.
                return self._take(start.start(), [Value(None, _FLAWS["invalid"])], len(self._text))
            self._drop_last_line(found)
        return _line_end(self._text, start.end())

    def _end_of_line(self, position: int) -> int | None:
        """Where the line of a value ends, None if it goes on with words of the model's."""
        if made_up_output(self._text, position):
            return position
        rest = _AFTER.match(self._text, position)
        return rest.end() if rest else None

    def _drop_last_line(self, found: list[_Found]) -> None:
        """The last value stands in a sentence, and so do the others on its line."""
        start = found.pop().start
        while found and "\n" not in self._text[found[-1].end : start]:
            start = found.pop().start

    def _fence(self, start: re.Match[str]) -> int:
        """A code block: its values if it has nothing else, prose otherwise."""
        mark = start.group("fence")
        closing = re.compile(rf"^[ \t]*{re.escape(mark[0])}{{{len(mark)},}}[ \t\r]*$", re.MULTILINE)
        body = _INFO.match(self._text, start.end())
        if body is None:
            return self._skip_fence(closing, start.end())
        found = self._values(body.end(), closing)
        if not found:
            return self._skip_fence(closing, body.end())
        end = self._fence_end(found[-1].end, mark)
        if end is None:
            return self._skip_fence(closing, found[-1].end)
        return self._take(start.start(), [item.value for item in found], end)

    def _fence_end(self, position: int, mark: str) -> int | None:
        """Where the block ends when only its closing fence follows."""
        between = _IN_FENCE_AFTER.match(self._text, position)
        position = between.end() if between else position
        if position == len(self._text) or made_up_output(self._text, position):
            return position
        length = len(self._text[position : position + 100]) - len(
            self._text[position : position + 100].lstrip(mark[0])
        )
        return position + length if length >= len(mark) else None

    def _skip_fence(self, closing: re.Pattern[str], position: int) -> int:
        end = closing.search(self._text, position)
        return len(self._text) if end is None else end.end()

    def _values(self, position: int, closing: re.Pattern[str] | None = None) -> list[_Found]:
        """The values that follow one another from `position` with nothing between them."""
        found: list[_Found] = []
        while len(found) < MAX_PARTS:
            block = self._read(position, closing)
            if not isinstance(block, Block):
                if _looks_like_action(self._text, position):
                    found.append(_Found(Value(None, _FLAWS[block]), position, len(self._text)))
                break
            found.append(_Found(Value(block.value), position, block.end, block.exact))
            between = _BETWEEN.match(self._text, block.end)
            position = between.end() if between else block.end
            if not self._text.startswith(("{", "["), position):
                break
        return found

    def _read(self, position: int, closing: re.Pattern[str] | None) -> Block | Flaw:
        """The value at `position`; when it has no end, what stands before the fence's or line's end."""
        block = self._reader.read(position)
        if block != "unfinished":
            return block
        end = closing.search(self._text, position) if closing else None
        stop = end.start() if end else _line_end(self._text, position)
        return self._reader.read(position, stop)


def _looks_like_action(text: str, position: int) -> bool:
    return _ACTION_KEY.search(text, position, position + _HEAD_CHARS) is not None


def _line_end(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end
