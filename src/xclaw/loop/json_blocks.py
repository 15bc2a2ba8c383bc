"""Reads JSON as models write it. Never guesses at text that was cut off, never takes long over junk.

Strict first; then a single pass that accepts single quotes, raw newlines and unescaped quotes in
strings, trailing commas, comments, bare words, Python literals and full-width punctuation; then
json-repair, on small text whose end is known.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, cast

import json_repair
import msgspec

REPAIR_CHARS = 12_000
"""json-repair needs 2 ms per 1,000 characters at its worst: nothing longer is given to it."""
MAX_DEPTH = 64
MAX_TOKENS = 6_000
MAX_FAILURES = 15
MAX_CHARS = 800_000
"""Characters that one reader looks at in vain before it gives up."""

# A quote ends a string only where JSON could go on after it: a model forgets to escape those inside.
_COMMENT = r"//|/\*|\#"
_KEY_FOLLOWS = r"\s*+(?:[\"'“}]|[A-Za-z_]\w{0,60}+\s*+[:：]|//|/\*|\#|\Z)"
_ENDS = {
    "key": rf"\s*+(?:[:：]|{_COMMENT})",
    "value": rf"""\s*+(?:[}}\]]|[,，]{_KEY_FOLLOWS}|["'][\w-]{{1,60}}["']\s*+[:：]|{_COMMENT}|\Z)""",
    "item": rf"\s*+(?:[,，\]}}]|{_COMMENT}|\Z)",
}


def _token_pattern(end: str) -> re.Pattern[str]:
    return re.compile(
        rf"""
          (?P<space>\s+|//[^\n]*|\#[^\n]*|/\*(?:[^*]++|\*(?!/))*+\*/)
        | \"{{3}}(?P<triple>.*?)\"{{3}} | '{{3}}(?P<triple_single>.*?)'{{3}}
        | "(?P<double>(?:[^"\\]++|\\.|"(?!{end}))*+)"
        | '(?P<single>(?:[^'\\]++|\\.|'(?!{end}))*+)'
        | “(?P<curly>[^”]*+)” | `(?P<tick>[^`]*+)`
        | (?P<open>[{{\[])
        | (?P<close>[}}\]])
        | (?P<comma>[,，])
        | (?P<colon>[:：])
        | (?!/\*)(?P<word>[^\s"'“`{{}}\[\],:，：]+)
        """,
        re.VERBOSE | re.DOTALL,
    )


_TOKENS = {place: _token_pattern(end) for place, end in _ENDS.items()}
_ESCAPE = re.compile(r'\\(.)|"', re.DOTALL)
_PUNCTUATION = re.compile(r"""[\s"'“”,:，：{}\[\]\\]+""")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?\Z")
_LITERALS = {
    "true": "true",
    "false": "false",
    "null": "null",
    "True": "true",
    "False": "false",
    "None": "null",
    "undefined": "null",
}
_UNKNOWN_COST_CHARS = 50_000
_PAIRS = {"{": "}", "[": "]"}

Flaw = Literal["unfinished", "invalid"]
"""Why there is no value: the text ends in the middle of one, or it is none."""


@dataclass(frozen=True, slots=True)
class Block:
    """A value that was read from a text, and the index just after it."""

    value: object
    end: int
    exact: bool = True
    """It was valid JSON, but for raw newlines in strings."""


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(strict=False, parse_constant=_no_constant)


def decode_json(text: str) -> object:
    """A whole text as JSON, raw newlines in strings allowed.

    Raises:
        ValueError: it is not JSON, or nested too deeply; the text says where.
    """
    try:
        value = _decoded(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if _is_deep(value, text.count("[") + text.count("{")):
        raise ValueError("it is nested too deeply")
    return value


def _decoded(text: str) -> object:
    try:
        return cast(object, msgspec.json.decode(text))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return cast(object, json.loads(text, strict=False, parse_constant=_no_constant))


def _is_deep(value: object, brackets: int) -> bool:
    """Whether a value with so many brackets is nested deeper than whoever walks it later can take."""
    if brackets <= MAX_DEPTH:
        return False
    level = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return cast(dict[str, object], value).values()
    return cast(list[object], value) if isinstance(value, list) else ()


def encode_json(value: object, *, sort_keys: bool = False) -> str:
    """JSON text of a JSON value; lone surrogates, which no wire takes, become question marks."""
    try:
        return msgspec.json.encode(value, order="sorted" if sort_keys else None).decode()
    except (UnicodeError, RecursionError):
        text = json.dumps(value, ensure_ascii=False, sort_keys=sort_keys)
        return text.encode("utf-8", "replace").decode()


class BlockReader:
    """Reads the values that stand in one text. Its whole work is bounded, however often it is asked."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens_left = MAX_TOKENS
        self._chars_left = MAX_CHARS
        self._repair_left = REPAIR_CHARS
        self._failures_left = MAX_FAILURES

    @property
    def gave_up(self) -> bool:
        """Too much of the text was junk: nothing more is read."""
        return self._chars_left <= 0 or self._tokens_left <= 0 or self._failures_left <= 0

    def read(self, start: int, end: int | None = None) -> Block | Flaw:
        """The object or array that starts at `start`; with `end`, the text stops there."""
        if self.gave_up:
            return "invalid"
        text = self._text if end is None else self._text[:end]
        try:
            value, stop = _DECODER.raw_decode(text, start)
            if not _is_deep(value, text.count("[", start, stop) + text.count("{", start, stop)):
                return Block(cast(object, value), stop)
            self._chars_left -= stop - start
        except json.JSONDecodeError as failure:
            self._chars_left -= failure.pos - start
        except (ValueError, RecursionError):
            self._chars_left -= _UNKNOWN_COST_CHARS
        block = self._read_leniently(text, start)
        self._failures_left -= not isinstance(block, Block)
        return block

    def _read_leniently(self, text: str, start: int) -> Block | Flaw:
        scan = _Scan(self._tokens_left)
        stop = scan.run(text, start)
        self._tokens_left = scan.tokens_left
        self._chars_left -= scan.looked_at
        if isinstance(stop, str):
            return stop
        try:
            return Block(decode_json("".join(scan.pieces)), stop, exact=False)
        except ValueError:
            return self._repair(text[start:stop], stop)

    def _repair(self, text: str, stop: int) -> Block | Flaw:
        self._repair_left -= len(text)
        if self._repair_left < 0:
            return "invalid"
        try:
            value = cast(object, json_repair.loads(text, skip_json_loads=True))
        except (ValueError, RecursionError):
            return "invalid"
        if not isinstance(value, dict | list) or not value:
            return "invalid"
        if _substance(text) != _substance(encode_json(cast(object, value))):
            return "invalid"
        return Block(cast(object, value), stop, exact=False)


def _substance(text: str) -> str:
    """A text without what a repair may change: had it lost or made up a word, this would differ."""
    return _PUNCTUATION.sub("", text)


class _Scan:
    """One lenient pass: finds where a value ends and rewrites it as strict JSON."""

    def __init__(self, tokens_left: int) -> None:
        self.tokens_left = tokens_left
        self.looked_at = 0
        self.pieces: list[str] = []
        self._open: list[str] = []

    def run(self, text: str, start: int) -> int | Flaw:
        position = start
        while self.tokens_left > 0 and (token := _TOKENS[self._place()].match(text, position)):
            self.tokens_left -= 1
            position = token.end()
            if not self._take(token.lastgroup or "", token):
                self.looked_at = position - start
                return "invalid"
            if not self._open:
                self.looked_at = position - start
                return position
        self.looked_at = len(text) - start
        if self.tokens_left <= 0:
            return "invalid"
        return self._finish(position) if position == len(text) else "unfinished"

    def _place(self) -> str:
        """What a string would be here."""
        if not self._open or self._open[-1] == "]":
            return "item"
        return "key" if self.pieces[-1] in ("{", ",") else "value"

    def _take(self, kind: str, token: re.Match[str]) -> bool:
        match kind:
            case "space":
                return True
            case "open":
                if len(self._open) == MAX_DEPTH:
                    return False
                self._open.append(_PAIRS[token.group()])
                self.pieces.append(token.group())
                return True
            case "close":
                return self._close(token.group())
            case _:
                self.pieces.append(_strict(kind, token.group(kind)))
                return True

    def _close(self, bracket: str) -> bool:
        if self.pieces[-1] == ",":
            self.pieces.pop()
        self.pieces.append(bracket)
        return self._open.pop() == bracket

    def _finish(self, position: int) -> int | Flaw:
        """Only an outermost bracket may be missing: anything less may be half of a value."""
        if len(self._open) == 1 and self.pieces[-1] in ("}", "]"):
            self._close(self._open[-1])
            return position
        return "unfinished"


def _strict(kind: str, text: str) -> str:
    if kind == "comma":
        return ","
    if kind == "colon":
        return ":"
    if kind == "word":
        return _LITERALS.get(text) or (text if _NUMBER.match(text) else _quoted(text))
    return _quoted(text)


def _quoted(body: str) -> str:
    if "\\" not in body:
        body = body.replace('"', '\\"')
        return f'"{body}"'
    return f'"{_ESCAPE.sub(_escape, body)}"'


def _escape(match: re.Match[str]) -> str:
    escaped = match.group(1)
    if escaped is None:
        return '\\"'
    if escaped == "'":
        return "'"
    if escaped == "\n":
        return "\\n"
    return match.group() if escaped in '"\\/bfnrtu' else "\\\\" + _ESCAPE.sub(_escape, escaped)
