"""What one clause tells somebody to do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from xclaw.gateway.routing.clauses import (
    NEAR_UNITS,
    Clause,
    skip,
)
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.objects import behind, is_made, named_object
from xclaw.gateway.routing.rules import Ask, Rule

ActKind = Literal["expert", "building", "working", "looking", "negated"]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is asked for."""

    kind: ActKind
    verb: str
    rule: str = ""
    """Of an expert's act."""
    words: tuple[str, ...] = ()


def act_at(clause: Clause, place: int, rules: Sequence[Rule]) -> Act | None:
    """What the verb at `place` asks for, with its object."""
    unit = clause.units[place]
    if not clause.chinese and place + 1 < len(clause.units) and clause.units[place + 1].is_any("noun_tails"):
        return None
    for rule in rules:
        words = _asked_words(clause, place, rule)
        if words is not None:
            return Act("expert", unit.text, rule.name, (unit.text, *words))
    if clause.chinese and _is_made_so(clause.units, place):
        return Act("looking", unit.text)
    if unit.is_any("making") and is_made(clause, place):
        return Act("building", unit.text)
    if unit.is_any("building") or (unit.is_any("guarding") and not _wants_advice(clause, place)):
        return Act("building", unit.text)
    if unit.is_any("working"):
        return Act("working", unit.text)
    return Act("looking", unit.text) if unit.is_any("looking", "guarding") else None


def _wants_advice(clause: Clause, verb: int) -> bool:
    """ "How do I prevent an injection?"; "please prevent injections" wants it done."""
    if clause.chinese:
        return clause.question
    return any(unit.text.split()[0] in ("how", "what", "what's") for unit in clause.units[:verb])


def _is_made_so(units: Sequence[Unit], verb: int) -> bool:
    """ "改得更快", "改快一点": not what is made, but how it should be."""
    following = units[verb + 1 : verb + NEAR_UNITS]
    if following and following[0].text == "得":
        following = following[skip(following, 1, "degrees") :]
        return bool(following) and _has_topic(following[0])
    return (
        bool(following)
        and _has_topic(following[0])
        and all(unit.is_any("particles", "tail_words") for unit in following[1:])
        and any(unit.is_any("moved") for unit in units[max(0, verb - NEAR_UNITS) : verb])
    )


def _has_topic(unit: Unit) -> bool:
    return any(name.startswith(("topic:", "weak_topic:")) for name in unit.classes)


def _asked_words(clause: Clause, place: int, rule: Rule) -> tuple[str, ...] | None:
    """The object's words when the verb at `place` asks for this rule's expert."""
    for index, ask in enumerate(rule.asks):
        if f"verb:{rule.name}:{index}" in clause.units[place].classes:
            words = _object_words(clause, place, ask, f"{rule.name}:{index}")
            if words is not None:
                return words
    return None


def _object_words(clause: Clause, verb: int, ask: Ask, name: str) -> tuple[str, ...] | None:
    if not ask.objects:
        return ()
    place = behind(clause, verb, name) if ask.behind else verb
    return None if place is None else named_object(clause, place, name)
