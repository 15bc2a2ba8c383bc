"""Blocks of foreign text that nothing inside them can end."""

import re

_RUNS = re.compile(r"`{3,}")


def fence(content: str, label: str = "") -> str:
    """`content` as a Markdown block, its fence longer than any run of backticks inside.

    The same content always gives the same block, so that a replay builds the same prompt.
    """
    longest = max((len(run) for run in _RUNS.findall(content)), default=2)
    mark = "`" * max(3, longest + 1)
    return f"{mark}{label}\n{content}\n{mark}"


def fenced_blocks(text: str) -> list[tuple[str, str]]:
    """Label and content of every block in a text that `fence` built, in order."""
    blocks: list[tuple[str, str]] = []
    lines = text.split("\n")
    start = 0
    while start < len(lines):
        opening = _RUNS.match(lines[start])
        if opening is None:
            start += 1
            continue
        mark = opening.group()
        try:
            end = lines.index(mark, start + 1)
        except ValueError:
            break
        blocks.append((lines[start][len(mark) :], "\n".join(lines[start + 1 : end])))
        start = end + 1
    return blocks
