"""Whether handing work out is likely to cost more than it brings: a cheap guess, never a refusal.

Splitting trivial or sequential work was measured to be dearer and worse than one agent doing it.
"""

import re
import unicodedata
from collections.abc import Sequence
from difflib import SequenceMatcher

TINY_CHARACTERS = 120
"""A request up to this long may be one that needs no worker; a Chinese character counts as three."""
SIMILAR = 0.6

_TRIVIAL = re.compile(
    r"""^(?:please\s+|can\ you\s+|could\ you\s+)?(?:
        (?:hi|hello|hey|thanks|thank\ you|good\ (?:morning|evening))\b
      | (?:what(?:'s|\ is|\ are|\ does)|who|when|where|which|define|spell|translate|convert|calculate|compute
          |how\ (?:much|many|old|far|long|do\ you\ say)|say|tell\ me)\b
      | [\d\s+\-*/().=?^%]+$
      | 你好|谢谢|早上好|请问|什么是|谁是|何时|翻译|计算|换算|(?:请)?(?:用一句话)?(?:解释|说明)一下
      | .*(?:是什么|是多少|是谁|等于几|怎么读|怎么写|什么意思)[？?。]?$
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_MATERIAL = re.compile(
    r"[/\\]\w|\w\.(?:py|ts|js|md|txt|json|csv|go|rs|java|c|h|sh|sql|html|pdf)\b|```", re.IGNORECASE
)
_NEEDS_ANOTHER = re.compile(
    r"""\b(?:output|result|results|findings|report|code|answer|draft|plan)\s+(?:of|from|by)\s+(?:the\s+)?
        (?:(?:first|second|third|other|previous|preceding)\ (?:task|worker|agent|step|delegate)|(?:task|step)\s*\#?\d)
      | \b(?:first|second|third|other|previous|preceding)\ (?:task|worker|agent|step|delegate)'s\s
      | \b(?:wait\ for|once|when|after)\ the\ (?:first|second|other|previous)\ (?:task|worker|agent|step)
      | (?:第[一二三1-3]个|上一个|前一个|另一个|其他|前面的)(?:任务|步骤|专家|代理)(?:的)?(?:结果|输出|报告|代码|完成)
    """,
    re.IGNORECASE | re.VERBOSE,
)


def hint(request: str, tasks: Sequence[str]) -> str | None:
    """Why handing out these tasks, all at once, for this request looks wasteful, or None.

    `tasks` are the texts that one call, or one turn, hands out.
    """
    if _is_trivial(request) and any(_similar(request, task) for task in tasks):
        return (
            "this request is small enough to be answered directly; handing it out whole costs a second agent"
        )
    if len(tasks) < 2:
        return None
    for number, task in enumerate(tasks, start=1):
        if "{{input}}" not in task and _NEEDS_ANOTHER.search(task):
            return (
                f"task {number} needs the output of another one that starts at the same time; hand it out "
                "when that result is there, or use a pipeline"
            )
    return None


def _is_trivial(request: str) -> bool:
    text = request.strip()
    width = sum(3 if unicodedata.east_asian_width(character) == "W" else 1 for character in text[:200])
    if not text or "\n" in text or width > TINY_CHARACTERS or len(text) > 200:
        return False
    return _TRIVIAL.match(text) is not None and _MATERIAL.search(text) is None


def _similar(request: str, task: str) -> bool:
    asked, given = " ".join(request.casefold().split()), " ".join(task.casefold().split())
    if asked in given and len(given) <= 2 * len(asked) + 80:
        return True
    if len(given) > 4 * len(asked) + 80:
        return False
    return SequenceMatcher(None, asked, given, autojunk=False).ratio() >= SIMILAR
