"""What one clause tells somebody to do."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from xclaw.gateway.routing.clauses import Clause, in_noun_list, is_verb, skip
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.objects import is_made, named_object
from xclaw.gateway.routing.rules import Rule, RuleBook

ActKind = Literal["expert", "building", "working", "looking", "negated"]


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that is asked for."""

    kind: ActKind
    verb: str
    rule: str = ""
    """Of an expert's act."""
    words: tuple[str, ...] = ()


def act_of(clause: Clause, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """The act of a clause; the first of `rules` that fits decides. None: nothing is asked for in it."""
    return _chinese_act(clause, rules) if clause.chinese else _english_act(clause, book, rules)


def _english_act(clause: Clause, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """The verb stands first, after words that only ask."""
    units = clause.units
    place, gerund = 0, False
    while place < len(units):
        unit = units[place]
        if unit.is_any("negations"):
            return Act("negated", unit.text)
        if is_verb(unit) and not (unit.is_any("polite") and _verb_after(units, place + 1)):
            return _act_at(clause, place, rules)
        if gerund and unit.text.endswith("ing"):
            return _gerund_act(clause, place, book, rules)
        if not (
            unit.is_any("polite", "joins", "sequels", "gerund_after")
            or unit.text == ","
            or unit.text.endswith("ly")
        ):
            break
        gerund = gerund or unit.is_any("gerund_after")
        place += 1
    return _negated_later(units, place) or _asked_later(clause, place, rules)


def _asked_later(clause: Clause, place: int, rules: Sequence[Rule]) -> Act | None:
    """ "Can somebody take a minute to review this?"."""
    units = clause.units
    asked = False
    for index in range(place, len(units) - 1):
        asked = asked or units[index].is_any("askers")
        if asked and units[index].text == "to" and is_verb(units[index + 1]):
            return _act_at(clause, index + 1, rules)
    return None


def _verb_after(units: Sequence[Unit], start: int) -> bool:
    place = skip(units, start, "polite")
    return place < len(units) and is_verb(units[place])


def _negated_later(units: Sequence[Unit], place: int) -> Act | None:
    """ "I really don't want": a subject, then the negation."""
    if place < len(units) and units[place].is_any("pronouns"):
        for unit in units[place + 1 : place + 3]:
            if unit.text in ("don't", "do not", "never", "not"):
                return Act("negated", unit.text)
    return None


def _gerund_act(clause: Clause, place: int, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """ "Would you mind reviewing": the verb that the "-ing" form was made of."""
    stem = clause.units[place].text.removesuffix("ing")
    for base in (stem, f"{stem}e"):
        unit = next(iter(book.terms.units((base,))))
        units = (*clause.units[:place], unit, *clause.units[place + 1 :])
        act = _act_at(replace(clause, units=units), place, rules)
        if act is not None:
            return act
    return None


def _chinese_act(clause: Clause, rules: Sequence[Rule]) -> Act | None:
    """The first verb that is none of a noun's parts, and nobody's who is told of."""
    units = clause.units
    fallback: Act | None = None
    for place, unit in enumerate(units):
        if not is_verb(unit) or _inside_noun(clause, place):
            continue
        if _is_negated(units, place):
            return Act("negated", unit.text)
        act = _act_at(clause, place, rules)
        if act is not None and act.kind != "looking":
            return act
        fallback = fallback or act
        if act is not None and not _only_introduces(unit):
            return act
    if fallback is None and units and units[skip(units, 0, "polite") % len(units)].is_any("negations"):
        return Act("negated", units[0].text)
    return fallback


def _only_introduces(unit: Unit) -> bool:
    """ "做", "用", "需要": another verb may follow that says more."""
    return any(name.startswith("verb:") or name == "making" for name in unit.classes) or len(unit.text) == 1


def _inside_noun(clause: Clause, place: int) -> bool:
    units = clause.units
    following = units[place + 1] if place + 1 < len(units) else Unit("")
    before = units[place - 1] if place else Unit("")
    if following.text == "得" and any(unit.is_any("moved") for unit in units[:place]):
        return False  # "把文档改得更清楚"
    if (
        _is_said_of(following)
        or following.is_any("noun_tails")
        or before.is_any("attributive")
        or before.text == "的"
    ):
        return True
    if any(unit.is_any("narrative") for unit in units[max(0, place - 2) : place]):
        return True
    if (
        clause.question
        and before.is_any("code_nouns")
        and not any(unit.is_any("polite", "handed") for unit in units[:place])
    ):
        return not any(name.startswith("verb:") for name in units[place].classes)  # "服务器配置安全吗"
    if before.is_any("lists") and place >= 2 and in_noun_list(units, place - 1):
        return True
    if before.is_any("handed") and any(map(is_verb, units[place + 1 :])):
        return True
    return _is_modifier(clause, place)


def _is_said_of(following: Unit) -> bool:
    """ "运行很慢": how something is done, not what to do."""
    return following.text[:1] in ("很", "太") and len(following.text) > 1


def _is_modifier(clause: Clause, place: int) -> bool:
    """ "给负责创建用户的模块写文档": a verb, then "的", then what is really asked for."""
    units = clause.units
    particle = next((index for index in range(place + 1, len(units) - 1) if units[index].text == "的"), None)
    if particle is None:
        return False
    handed = any(unit.is_any("handed") for unit in units[:place])
    if handed:
        return any(is_verb(unit) for unit in units[particle + 1 :])
    asked = not any(unit.is_any("polite") for unit in units[: place + 1])
    return (
        clause.question
        and asked
        and place == 0
        and any(unit.is_any("questions") for unit in units[particle + 1 :])
    )


def _is_negated(units: Sequence[Unit], place: int) -> bool:
    for index in range(place - 1, -1, -1):
        if units[index].is_any("negations"):
            return True
        if not units[index].is_any("polite", "looking", "sequels", "joins"):
            return False
    return False


def _act_at(clause: Clause, place: int, rules: Sequence[Rule]) -> Act | None:
    """What the verb at `place` asks for, with its object."""
    unit = clause.units[place]
    if not clause.chinese and place + 1 < len(clause.units) and clause.units[place + 1].is_any("noun_tails"):
        return None
    for rule in rules:
        words = _asked_words(clause, place, rule)
        if words is not None:
            return Act("expert", unit.text, rule.name, (unit.text, *words))
    if unit.is_any("making") and is_made(clause, place):
        return Act("building", unit.text)
    if unit.is_any("building") or (unit.is_any("guarding") and not clause.question):
        return Act("building", unit.text)
    if unit.is_any("working"):
        return Act("working", unit.text)
    return Act("looking", unit.text) if unit.is_any("looking", "guarding") else None


def _asked_words(clause: Clause, place: int, rule: Rule) -> tuple[str, ...] | None:
    """The object's words when the verb at `place` asks for this rule's expert."""
    for index, ask in enumerate(rule.asks):
        if f"verb:{rule.name}:{index}" in clause.units[place].classes:
            words = named_object(clause, place, f"{rule.name}:{index}") if ask.objects else ()
            if words is not None:
                return words
    return None
