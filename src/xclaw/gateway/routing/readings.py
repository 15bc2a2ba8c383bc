"""A clause with what it asks for and what it is about."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xclaw.gateway.routing.acts import Act
from xclaw.gateway.routing.chinese_acts import chinese_act
from xclaw.gateway.routing.clauses import Clause
from xclaw.gateway.routing.english_acts import english_act
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.own_text import CODE
from xclaw.gateway.routing.rules import RuleBook


@dataclass(frozen=True, slots=True)
class Reading:
    """A clause with its act, and the rules' words that count in it."""

    clause: Clause
    act: Act | None
    topics: tuple[tuple[str, str], ...] = ()
    """Rule and word."""
    weak_topics: tuple[tuple[str, str], ...] = ()


def readings_of(clauses: Sequence[Clause], book: RuleBook) -> tuple[Reading, ...]:
    code = any(map(about_code, clauses))
    near_code = code or any(map(_points, clauses))
    return tuple(_reading(clause, book, code, near_code) for clause in clauses)


def _reading(clause: Clause, book: RuleBook, code: bool, near_code: bool) -> Reading:
    act = _act_of(clause, book)
    if act is not None and act.kind != "looking":
        return Reading(clause, act)
    if act is None and _is_statement(clause) and not code:
        return Reading(clause, act)
    weak = tuple(_classed(clause, "weak_topic:")) if near_code else ()
    topics = [*_classed(clause, "topic:"), *(_classed(clause, "code_topic:") if act or near_code else ())]
    return Reading(clause, act, tuple(topics), weak)


def _classed(clause: Clause, prefix: str) -> Iterator[tuple[str, str]]:
    """The rule and the word of each unit with a class that begins so."""
    for unit in clause.units:
        for name in sorted(unit.classes):
            if name.startswith(prefix):
                yield name.removeprefix(prefix), unit.text


def _is_statement(clause: Clause) -> bool:
    """Something is told, not asked."""
    if clause.question:
        return False
    if any(unit.is_any("told") for unit in clause.units):
        return True
    first = next((unit for unit in clause.units if not unit.is_any("polite", "joins")), Unit(""))
    return not clause.chinese and first.is_any("pronouns")


def about_code(clause: Clause) -> bool:
    return any(unit.is_any("code_nouns") or unit.text == CODE for unit in clause.units)


def _points(clause: Clause) -> bool:
    """ "Is this safe?": a pointer that stands for itself, not in front of a noun."""
    units = clause.units
    for index, unit in enumerate(units):
        if unit.is_any("pointers") and (index + 1 == len(units) or units[index + 1].is_any("after_pointer")):
            return True
    return False


def _act_of(clause: Clause, book: RuleBook) -> Act | None:
    """The act of a clause; the first rule that fits decides. None: nothing is asked for in it."""
    return chinese_act(clause, book.rules) if clause.chinese else english_act(clause, book, book.rules)
