"""The places at a debate, and how what each said is shown."""

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Spawn
from xclaw.patterns.children import unknown_agent
from xclaw.patterns.render import failure_reason, plain_output, pointer_paths, shorten

_OTHER_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
PARTIAL_CHARACTERS = 2_000
"""Of what a seat had said when it failed."""


@dataclass(frozen=True, slots=True)
class Seat:
    """One agent's place. An agent that is named twice has two."""

    label: str
    agent: str
    key: str
    """Tells the seats of one call apart; the same after a replay."""
    fault: str = ""
    """Why nobody sits here."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A seat's last answer: `text` is empty when it never gave one."""

    text: str = ""
    failure: str = ""
    partial: str = ""
    paths: tuple[str, ...] = ()


def seats_of(names: Sequence[str], spawn: Spawn) -> tuple[Seat, ...]:
    """One seat for each name, in order; an unknown name keeps its place, with the fault."""
    resolved = [spawn.resolve(name) for name in names]
    counts: dict[str, int] = {}
    seats: list[Seat] = []
    for name, agent in zip(names, resolved, strict=True):
        if agent is None:
            label = _one_line(name)
            seats.append(Seat(label, label, "", unknown_agent(spawn, name)))
            continue
        number = counts.get(agent, 0)
        counts[agent] = number + 1
        label = f"{agent}#{number + 1}" if resolved.count(agent) > 1 else agent
        seats.append(Seat(label, agent, f"{agent}#{number}"))
    return tuple(seats)


def answer_from(result: Result, before: Answer | None, round_number: int) -> Answer:
    """What a seat now stands for: a failure in a later round leaves its earlier answer standing."""
    text = plain_output(result) if result.succeeded else ""
    if text.strip():
        paths = tuple(path for path in pointer_paths(result.pointers).values() if path not in text)
        return Answer(text, paths=paths)
    reason = "it answered nothing" if result.succeeded else failure_reason(result)
    if before is None:
        return Answer(failure=reason, partial=shorten(result.text, PARTIAL_CHARACTERS))
    failure = f"round {round_number} failed: {reason}; this is its answer of an earlier round"
    return Answer(before.text, failure=failure, paths=before.paths)


def section(label: str, answer: Answer, labels: Collection[str]) -> str:
    """One seat's part of the debate's outcome."""
    if not answer.text:
        partial = answer.partial.strip()
        return f"[{label}]: failed: {answer.failure}" + (f"\nIt had so far:\n{partial}" if partial else "")
    parts = [f"[{label}]\n{_without_forged_sections(answer.text, labels)}"]
    if answer.paths:
        parts.append("artifacts: " + ", ".join(answer.paths))
    if answer.failure:
        parts.append(f"({answer.failure})")
    return "\n\n".join(parts)


def _without_forged_sections(text: str, labels: Collection[str]) -> str:
    """The text, with any divider indented that would open a section in another seat's name, whatever ends
    its lines."""
    if "---" not in text:
        return text
    names = "|".join(re.escape(label) for label in [*labels, "judge", "vote"])
    return re.sub(
        rf"^(---+[^\S\n]*\n\s*+\[\s*+(?:{names})\b)",
        r" \1",
        _OTHER_LINE_END.sub("\n", text),
        flags=re.MULTILINE | re.IGNORECASE,
    )


def _one_line(name: str) -> str:
    return shorten(" ".join(name.split()), 60)
