"""Whether a task stands alone (SPEC E6).

A worker sees nothing but its task, so "the code above" cannot be worked on. A check that turns away good
tasks is worse than none; therefore a task is refused only when its whole request is one of a few known
shapes that point elsewhere, and the task holds no material that could be meant: no code, quotation, path,
address, and no text after a colon or further down.
"""

import re
from functools import cache

from xclaw.patterns.dangling_chinese import CHINESE_CLAUSE, CHINESE_DANGLING
from xclaw.patterns.dangling_english import ENGLISH_CLAUSE, ENGLISH_DANGLING

MAX_CHARACTERS = 600
"""A task with more words of its own than this says enough to be tried."""

_HEADER = re.compile(r"^\[(?:Task workspace|Shared delivery dir|Input artifacts):[^\n]*\]\s*", re.MULTILINE)
_MATERIAL = re.compile(
    r"""```|~~~|`[^`\n]+`                                             # code
      | "[^"\n]{2,}" | “[^”\n]{2,}” | ‘[^’\n]{2,}’ | «[^»\n]{2,}»       # quotations
      | 「[^」\n]{2,}」 | 『[^』\n]{2,}』 | 《[^》\n]{2,}》
      | (?<![^\W_])'[^'\n]{2,}'(?![^\W_])
      | https?:// | www\.\w
      | (?<![\w.])[\w.@~-]*/[\w.@-]+(?:/|\.\w|\b(?=/))                    # a path with a folder
      | (?<![\w/])(?:src|lib|tests?|docs?|app|bin|pkg|cmd|workspace|scripts?)/
      | \w\.(?:py|pyi|ts|tsx|js|jsx|mjs|md|txt|json|jsonl|csv|tsv|go|rs|java|kt|c|h|cc|cpp|hpp|cs|sh|sql|html|css
            |pdf|docx?|xlsx?|toml|ya?ml|ini|cfg|xml|rb|php|swift|ipynb|log|lua|tex|rst|diff|patch|png|jpe?g|svg)\b
      | [:：][ \t]*\S[^\n]{3,}                                            # text after a colon
      | [:：][ \t]*\n\s*\S
      | \{\{input\}\}
      | \w\(\w*\) | [=<>{};]\s*\S*\s*[=<>{};]                               # code without a fence
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SENTENCES = re.compile(r"(?<=[.!?])\s+|[。！？；]+|\n+")
_CLAUSES = re.compile(r"[,，、]\s*")


def prepare() -> None:
    """Do now what the first `check` would do: a tenth of a second of compiling."""
    for shape in (ENGLISH_DANGLING, ENGLISH_CLAUSE, CHINESE_DANGLING, CHINESE_CLAUSE):
        _compiled(shape)


def check(task: str, *, has_inputs: bool = False) -> str | None:
    """Why a worker could not know what the task means, or None when it probably can.

    `has_inputs`: artifacts are handed on with the task, so that its words may mean those.
    """
    text = _HEADER.sub("", task).strip()
    if has_inputs or not text or len(text) > MAX_CHARACTERS or _MATERIAL.search(text):
        return None
    sentences = [sentence.strip() for sentence in _SENTENCES.split(text) if sentence.strip()]
    if not sentences:
        return None
    pointing = _pointing_elsewhere(sentences[0])
    if pointing is None or not all(_adds_no_material(sentence) for sentence in sentences[1:]):
        return None
    return (
        f"{pointing!r} points at something that the worker cannot see: it gets this text and nothing else. "
        "Put the material into the task, or name the path of a delivered artifact"
    )


def _pointing_elsewhere(sentence: str) -> str | None:
    """The sentence, when all it asks for is work on something that is not in the task."""
    plain = sentence.rstrip(".!?。！？ ")
    head, *rest = _CLAUSES.split(plain)
    candidates = [plain]
    if rest and all(_is_clause(clause) for clause in rest):
        candidates.append(head)
    for candidate in candidates:
        if _is_dangling(candidate.strip()):
            return plain[:120]
    return None


def _adds_no_material(sentence: str) -> bool:
    """The sentence only says how to do the work, or points elsewhere once more."""
    plain = sentence.strip(" -*•.!?。！？")
    return (
        all(_is_clause(clause) for clause in _CLAUSES.split(plain)) or _pointing_elsewhere(plain) is not None
    )


def _is_clause(clause: str) -> bool:
    plain = clause.strip()
    return any(_compiled(shape).match(plain) for shape in (ENGLISH_CLAUSE, CHINESE_CLAUSE))


def _is_dangling(sentence: str) -> bool:
    return any(_compiled(shape).fullmatch(sentence) for shape in (ENGLISH_DANGLING, CHINESE_DANGLING))


@cache
def _compiled(shape: str) -> re.Pattern[str]:
    """When it is first needed: most processes never check a task."""
    return re.compile(shape, re.IGNORECASE | re.VERBOSE)
