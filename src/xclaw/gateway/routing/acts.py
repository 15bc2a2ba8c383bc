"""What one clause tells somebody to do."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from xclaw.gateway.routing.clauses import (
    NEAR_UNITS,
    Clause,
    in_noun_list,
    is_done_first,
    is_told,
    is_verb,
    names_you,
    skip,
)
from xclaw.gateway.routing.inflections import base_forms, needed_first, wanted_done
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.objects import behind, is_made, named_object
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
        if unit.is_any("done_first"):
            return _act_before(clause, place, book, rules)
        if is_verb(unit) and not (unit.is_any("polite") and _verb_after(units, place + 1)):
            return _wanted_act(clause, place, book, rules) or _act_at(clause, place, rules)
        if gerund and unit.text.endswith("ing"):
            return _first_act(base_forms(clause, place, book), place, rules)
        if not (
            unit.is_any("polite", "joins", "sequels", "gerund_after")
            or unit.text == ","
            or unit.text.endswith("ly")
        ):
            break
        gerund = gerund or unit.is_any("gerund_after")
        place += 1
    return (
        _negated_later(units, place)
        or _asked_later(clause, place, rules)
        or _needed_act(clause, place, book, rules)
    )


def _first_act(clauses: Iterable[Clause], place: int, rules: Sequence[Rule]) -> Act | None:
    acts = (_act_at(clause, place, rules) for clause in clauses)
    return next((act for act in acts if act is not None), None)


def _act_before(clause: Clause, place: int, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """ "Once you have reviewed it, …": a step as well. Work that nobody in particular does may be the user's own."""
    act = _first_act(base_forms(clause, place + 1, book), place + 1, rules)
    if act is not None and act.kind != "expert" and not names_you(clause.units[place]):
        return None
    return act


def _wanted_act(clause: Clause, place: int, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """ "I'd like this reviewed": a verb behind what it is about."""
    if not clause.units[place].is_any("wanting"):
        return None
    act = _first_act(wanted_done(clause, place, book), place, rules)
    return act if act is not None and act.kind != "looking" else None


def _needed_act(clause: Clause, place: int, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
    """ "Documentation needed for this"."""
    if place < len(clause.units) and clause.units[place].is_any("questions"):
        return None
    act = _first_act(needed_first(clause, place, book), place, rules)
    return act if act is not None and act.kind == "expert" else None


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


def _chinese_act(clause: Clause, rules: Sequence[Rule]) -> Act | None:
    """The first verb that is none of a noun's parts, and nobody's who is told of."""
    units = clause.units
    fallback: Act | None = None
    for place, unit in enumerate(units):
        if unit.is_any("whys"):
            break
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
    near = units[max(0, place - NEAR_UNITS) : place]
    if following.text == "得" and any(unit.is_any("moved") for unit in near):
        return False  # "把文档改得更清楚"
    if (
        _is_said_of(following)
        or ((is_told(units, place) or following.is_any("afterwards")) and not is_done_first(units, place + 1))
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
            name = f"{rule.name}:{index}"
            put = behind(clause, place, name) if ask.behind else place
            words = named_object(clause, put, name) if ask.objects and put is not None else ()
            words = None if put is None else words
            if words is not None:
                return words
    return None
