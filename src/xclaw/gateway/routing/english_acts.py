"""What an English clause tells somebody to do."""

from collections.abc import Iterable, Sequence

from xclaw.gateway.routing.acts import Act, act_at
from xclaw.gateway.routing.clauses import Clause, is_verb, names_you, skip
from xclaw.gateway.routing.inflections import base_forms, due_first, needed_first, wanted_done
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.rules import Rule, RuleBook


def english_act(clause: Clause, book: RuleBook, rules: Sequence[Rule]) -> Act | None:
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
            return _wanted_act(clause, place, book, rules) or act_at(clause, place, rules)
        if gerund and unit.text.endswith(("ing", "ed")):
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
    acts = (act_at(clause, place, rules) for clause in clauses)
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
    """ "Documentation needed for this", "can this be documented?"."""
    asked = place < len(clause.units) and clause.units[place].is_any("questions")
    forms = () if asked else needed_first(clause, place, book)
    act = _first_act((*forms, *due_first(clause, place, book)), place, rules)
    return act if act is not None and act.kind == "expert" else None


def _asked_later(clause: Clause, place: int, rules: Sequence[Rule]) -> Act | None:
    """ "Can somebody take a minute to review this?"."""
    units = clause.units
    asked = False
    for index in range(place, len(units) - 1):
        asked = asked or units[index].is_any("askers")
        if asked and units[index].text == "to" and is_verb(units[index + 1]):
            return act_at(clause, index + 1, rules)
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
