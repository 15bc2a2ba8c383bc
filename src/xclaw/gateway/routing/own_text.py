"""What a person says in a request, without what they show: code, quotations, logs, patches.

Everything is linear in the text's length, and only a bounded part of it is looked at closely.
"""

import bisect
import itertools
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

_ONE_TO_ONE = str.maketrans("＂＇｀‘’‛„‟", "\"'`'''““")
_FENCE = re.compile(r"`{3,}|(?:(?<=\n)|\A)[ \t]{0,3}~{3,}")
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
_PATCH = re.compile(r"(?:diff --git |Index: |@@ |--- \S|\+\+\+ \S)")
_IN_PATCH = re.compile(r"[-+ @\\]|diff |index |new file|deleted file|similarity |rename |$")
_TRACE = re.compile(r"\s*Traceback \(most recent call last\)")


def own_text(text: str) -> str:
    """`text` with code and quotations blanked out; of a very long one, its beginning and its end."""
    pieces = "\n".join(_outside_fences(text.translate(_ONE_TO_ONE)))
    if len(pieces) > HEAD + TAIL:
        pieces = f"{pieces[:HEAD]}\n{pieces[-TAIL:]}"
    pieces = pieces.replace(CODE, " ").replace(QUOTED, " ")
    lines = "\n".join(_own_lines(pieces.strip().splitlines()))
    return _SINGLE.sub(QUOTED, _without_pairs(_without_ticks(lines)))


def _outside_fences(text: str) -> Iterator[str]:
    """The pieces between fenced blocks; an unclosed block goes on to the end."""
    position = 0
    for _ in range(MAX_FENCES):
        opening = _FENCE.search(text, position)
        if opening is None:
            yield text[position:]
            return
        mark = opening[0].strip()
        line_end = text.find("\n", opening.end())
        line_end = len(text) if line_end < 0 else line_end
        same_line = text.find(mark, opening.end(), line_end)
        yield text[position : opening.start()]
        if same_line >= 0 and mark[0] == "`":
            yield CODE
            position = same_line + len(mark)
        else:
            position = _after_block(text, mark, line_end)


def _after_block(text: str, mark: str, start: int) -> int:
    """Where the block that `mark` opened is over."""
    closing = re.compile(rf"\n[ \t]{{0,12}}(?:[-*+]\s)?{re.escape(mark)}{re.escape(mark[0])}*")
    for found in itertools.islice(closing.finditer(text, start), MAX_FENCES):
        line_end = text.find("\n", found.end(), found.end() + 200)
        rest = text[found.end() : line_end if line_end >= 0 else found.end() + 200].strip()
        if not rest or not _INFO_WORD.match(rest):
            return found.end()
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
