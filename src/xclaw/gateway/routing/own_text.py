"""What a person says in a request, without what they show: code, quotations, logs, patches.

Everything is linear in the text's length, and only a bounded part of it is looked at closely.
"""

import bisect
import re
from collections.abc import Iterator

CODE = "\ufffc"
"""Stands where code, a path or an identifier stood."""
QUOTED = "\ufffb"
"""Stands where a quotation stood."""
HEAD, TAIL = 20_000, 4_000
"""Characters outside fences that are looked at, from the beginning and from the end."""
MAX_FENCES = 2_000
MAX_QUOTATION = 2_000
MAX_MARK, MAX_INDENT = 20, 16
"""Characters of a fence's mark, and in front of a closing one."""

_ONE_TO_ONE = str.maketrans("＂＇｀‘’‛„‟", "\"'`'''““")
_INFO_WORD = re.compile(r"[A-Za-z0-9+#._-]*\Z")
_PAIRS = {"“": "”", "「": "」", "『": "』", "«": "»", "《": "》", "〈": "〉", '"': '"'}
_SINGLE = re.compile(
    r"(?<![A-Za-z0-9_'])'(?=\S)(?:[^'\n]|(?<=[A-Za-z])'(?=[A-Za-z])){1,200}'(?![A-Za-z0-9_])"
)
_TICKS = re.compile(r"`+")
_CHINESE = re.compile(r"[\u3400-\u9fff]")
_PASTED = re.compile(
    r"""\s*(?:
        //|/\*|\*/|\#include\b|\#!|>>>\s|\$\s|<[/!?]?[A-Za-z][^<>]{0,200}>|<!--
        | (?:async\s+)?def\s+\w+\s*\( | class\s+\w+\s*[:({] | (?:export\s+)?(?:async\s+)?function\b[^(]{0,80}\(
        | import\s+[\w.{*"'] [^\s]*(?:\s+(?:as|from)\s.*)?\s*;?$ | from\s+[\w.]+\s+import\s
        | (?:const|let|var|final|static|public|private|protected)\s+\S[^=({]{0,80}[=({]
        | (?:func|fn)\s+[\w(][^(]{0,60}\( | package\s+[\w.]+;?$ | @\w+(?:[.(].*)?$ | return\b.*[;()\[\]]
        | [\w.\[\]]{1,80}\s*[-+*/|&]?=\s*\S | [\w.]{1,80}\(.*\)[;:,]?\s*$ | \}\s*(?:else|catch|finally|while)?\b
        | SELECT\s.*\sFROM\s | (?:INSERT\s+INTO|UPDATE\s+\w+\s+SET|DELETE\s+FROM|CREATE\s+TABLE)\b
        | at\s+\S.{0,200}[:(]\d+ | File\s+"[^"]{0,300}",\s+line\s+\d | Caused\s+by:\s | Exception\s+in\s+thread
        | (?:[A-Za-z_][\w.]{0,80})?(?:Error|Exception)(?::|$) | panic:\s | goroutine\s+\d
        | \[?\d{4}-\d\d-\d\d[T\s]\d\d:\d\d | (?:INFO|WARN|WARNING|ERROR|DEBUG|TRACE|FATAL)\b[\s:\]]
    )""",
    re.VERBOSE,
)
_BLOCK_OPENS = re.compile(r"\s*(?:if|for|while|with|else|elif|try|except|finally|switch|match|case)\b.*:\s*$")
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
LEAST_FOREIGN = 60
"""Characters of a paragraph in another language than the request, from which on it is what the request is about."""
_PATCH = re.compile(r"(?:diff --git |Index: |@@ |--- \S|\+\+\+ \S)")
_IN_PATCH = re.compile(r"[-+ @\\]|diff |index |new file|deleted file|similarity |rename |$")
_TRACE = re.compile(r"\s*Traceback \(most recent call last\)")


def own_text(text: str) -> str:
    """`text` with code and quotations blanked out; of a very long one, its beginning and its end."""
    pieces = "\n".join(_outside_fences(text))
    if len(pieces) > HEAD + TAIL:
        pieces = f"{pieces[:HEAD]}\n{pieces[-TAIL:]}"
    pieces = pieces.translate(_ONE_TO_ONE)
    lines = _without_foreign("\n".join(_own_lines(pieces.strip().splitlines())))
    return _SINGLE.sub(QUOTED, _without_pairs(_without_ticks(lines)))


def _outside_fences(text: str) -> Iterator[str]:
    """The pieces between fenced blocks; an unclosed block goes on to the end."""
    position = 0
    line_end = ticks = -1
    for _ in range(MAX_FENCES):
        if ticks < position:
            ticks = text.find("```", position)
            ticks = len(text) if ticks < 0 else ticks
        start = _next_fence(text, position, ticks)
        if start < 0:
            yield text[position:]
            return
        mark = text[start] * 3
        while text[start + len(mark) : start + len(mark) + 1] == mark[0] and len(mark) < MAX_MARK:
            mark += mark[0]
        if line_end < start:
            line_end = text.find("\n", start)
            line_end = len(text) if line_end < 0 else line_end
        same_line = text.find(mark, start + len(mark), line_end)
        yield text[position:start]
        if same_line >= 0 and mark[0] == "`":
            yield CODE
            position = same_line + len(mark)
        else:
            position = _after_block(text, mark, line_end)


def _next_fence(text: str, start: int, ticks: int) -> int:
    """Where the next fence opens: the backticks, or earlier tildes at the beginning of a line; -1 without one."""
    tildes = start
    while True:
        tildes = text.find("~~~", tildes, ticks)
        if tildes < 0:
            return ticks if ticks < len(text) else -1
        before = text[max(0, tildes - 4) : tildes].rpartition("\n")
        if not before[2].strip() and (before[1] or tildes <= 3):
            return tildes
        line = text.find("\n", tildes, ticks)
        tildes = ticks if line < 0 else line


def _after_block(text: str, mark: str, start: int) -> int:
    """Where the block that `mark` opened is over."""
    for _ in range(MAX_FENCES):
        found = text.find(mark, start)
        if found < 0:
            return len(text)
        line = text.rfind("\n", max(start - 1, found - MAX_INDENT), found)
        start = found + len(mark)
        while text[start : start + 1] == mark[0]:
            start += 1
        rest = text[start : start + 200].partition("\n")[0].strip()
        closes = line >= 0 and not text[line:found].strip(" \t\n-*+")
        if closes and (not rest or not _INFO_WORD.match(rest)):
            return start
    return len(text)


def _own_lines(lines: list[str]) -> Iterator[str]:
    """Lines that are neither indented code, nor quoted, nor pasted."""
    state = ""  # what the line before was: "code", "patch", "trace" or ""
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        before = lines[index - 1] if index else "-"
        state = _kind(line, state, before, following)
        if not state:
            yield line
        elif state == "own":
            state = ""


def _kind(line: str, state: str, before: str, following: str) -> str:
    """What this line is; "" for the person's own words."""
    if state == "patch" and _IN_PATCH.match(line):
        return "patch"
    if _PATCH.match(line):
        return "patch"
    if _TRACE.match(line) or (state == "trace" and line[:1] in (" ", "\t")):
        return "trace"
    if line.lstrip()[:1] == ">":
        return "quoted"
    if _is_code(line, state, before, following):
        return "code"
    return ""


def _is_code(line: str, state: str, before: str, following: str) -> bool:
    if not line.strip():
        return state == "code" and following[:1] in (" ", "\t")
    indented = line.startswith(("    ", "\t"))
    if indented and (not before.strip() or before.rstrip().endswith((":", "：")) or state == "code"):
        return True
    if state == "code" and line[0] in " \t#})]":
        return True
    if _CHINESE.search(line) and not line.lstrip().startswith(("//", "/*", "#!")):
        return False
    if line.rstrip().endswith(("{", "}", ";", "};", "),")):
        return True
    if _BLOCK_OPENS.match(line):
        return following[:1] in (" ", "\t") and not following.lstrip().startswith(("-", "*"))
    return _PASTED.match(line) is not None


def _without_foreign(text: str) -> str:
    """Without the paragraphs that are in another language than the first, such as an article to be translated.

    An English request says with a colon that something follows: a Chinese one may stand below an English text.
    """
    first, *others = _BLANK_LINES.split(text)
    chinese = _CHINESE.search(first) is not None
    if not chinese and not first.rstrip().endswith((":", "：")):
        return text
    kept = [
        paragraph
        for paragraph in others
        if len(paragraph.strip()) < LEAST_FOREIGN or (_CHINESE.search(paragraph) is not None) == chinese
    ]
    return "\n\n".join([first, *kept])


def _without_ticks(text: str) -> str:
    """Inline code replaced by one mark."""
    runs = [(found.start(), len(found[0])) for found in _TICKS.finditer(text)]
    by_length: dict[int, list[int]] = {}
    for start, length in runs:
        by_length.setdefault(length, []).append(start)
    parts: list[str] = []
    position = 0
    for start, length in runs:
        if start < position:
            continue
        same = by_length[length]
        index = bisect.bisect_right(same, start)
        if index < len(same):
            parts += (text[position:start], CODE)
            position = same[index] + length
    return "".join([*parts, text[position:]])


def _without_pairs(text: str) -> str:
    """Quotations in paired marks replaced by one mark each; an unclosed one stays."""
    parts: list[str] = []
    position = 0
    closings: dict[str, int] = {}  # the next place of each closing mark, so that it is searched for once
    for found in re.finditer(r'[“「『«《〈"]', text):
        start = found.start()
        if start < position:
            continue
        closing = _PAIRS[found[0]]
        if closings.get(closing, -1) <= start:
            end = text.find(closing, start + 1)
            closings[closing] = len(text) if end < 0 else end
        end = closings[closing]
        if end < len(text) and end - start <= MAX_QUOTATION and "\n\n" not in text[start:end]:
            parts += (text[position:start], QUOTED)
            position = end + 1
    return "".join([*parts, text[position:]])
