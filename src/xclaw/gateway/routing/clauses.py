"""Sentences cut into clauses, so that each asks for one thing at most."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.own_text import CODE, QUOTED
from xclaw.gateway.routing.request_words import RequestWords, Sentence
from xclaw.gateway.routing.rules import RuleBook
from xclaw.gateway.routing.spelling import corrected

ACTS = ("building", "working", "looking", "guarding")

NEAR_UNITS = 24
"""How far from "after" or "I need" the verb may stand that belongs to it."""
SHOWN = frozenset((CODE, QUOTED))


@dataclass(frozen=True, slots=True)
class Clause:
    """A part of a sentence, as terms of the lexicon."""

    units: tuple[Unit, ...]
    chinese: bool
    question: bool
    sequel: bool = False
    """It begins with "then", or stands behind an arrow."""
    before: tuple[Unit, ...] = ()
    """The clause in front of it, which "it" may mean."""


def clauses_of(request: RequestWords, book: RuleBook) -> tuple[Clause, ...]:
    said = [sentence for sentence in request.sentences if not set(sentence.tokens) <= SHOWN]
    clauses = [clause for sentence in said for clause in _clauses(sentence, book)]
    return tuple(
        replace(clause, before=clauses[index - 1].units if index else ())
        for index, clause in enumerate(clauses)
    )


def is_verb(unit: Unit) -> bool:
    """Whether the term can say what is to be done."""
    return any(name in ACTS or name.startswith("verb:") for name in unit.classes)


def skip(units: Sequence[Unit], start: int, *names: str) -> int:
    """The first place from `start` on that is in none of these classes."""
    while start < len(units) and units[start].is_any(*names):
        start += 1
    return start


def _clauses(sentence: Sentence, book: RuleBook) -> Iterator[Clause]:
    units = tuple(book.terms.units(corrected(sentence.tokens, book.spelling)))
    cuts = _chinese_cuts(units) if sentence.chinese else _english_cuts(units)
    after_arrow = sentence.after_arrow
    for part in _pieces(units, cuts):
        question = sentence.end == "?" or any(_asks(unit) for unit in part)
        yield Clause(part, sentence.chinese, question, after_arrow or _is_sequel(part))
        after_arrow = False


def _asks(unit: Unit) -> bool:
    return unit.is_any("questions") or unit.text.split(" ")[0] in (
        "what",
        "what's",
        "how",
        "why",
        "is",
        "which",
    )


def _is_sequel(units: Sequence[Unit]) -> bool:
    for unit in units:
        if unit.is_any("sequels"):
            return True
        if not unit.is_any("joins", "polite") and unit.text not in (",", "、"):
            return False
    return False


def _pieces(units: Sequence[Unit], cuts: Iterable[int]) -> Iterator[tuple[Unit, ...]]:
    begin = 0
    for cut in (*cuts, len(units)):
        while begin < cut and units[begin].text in (",", "、"):
            begin += 1
        if begin < cut:
            yield tuple(units[begin:cut])
        begin = cut


def _chinese_cuts(units: Sequence[Unit]) -> Iterator[int]:
    """Before each comma, and before a joining word that a verb follows."""
    for index, unit in enumerate(units):
        if unit.text == ",":
            yield index
        elif index and (unit.is_any("joins") or unit.text == "、"):
            verb = skip(units, index + 1, "joins", "polite", "sequels")
            asks = verb < len(units) and is_verb(units[verb]) and not is_told(units, verb)
            if asks and not in_noun_list(units, index):
                yield index
        elif (index and unit.text in ("完", "好") and verb_follows(units, index + 1)) or (
            is_done_first(units, index) and index + 1 < len(units) and _orders(units, index + 1)
        ):
            yield index + 1


def is_done_first(units: Sequence[Unit], index: int) -> bool:
    """ "审查代码后": work for an expert, then "after"; what is written or made before may be the user's own."""
    if index >= len(units) or not units[index].is_any("afterwards"):
        return False
    before = units[max(0, index - NEAR_UNITS) : index]
    verb = next((unit for unit in before if is_verb(unit) and not unit.is_any("polite")), Unit(""))
    return (
        is_verb(verb)
        and not verb.is_any("building", "working", "making")
        and not any(unit.is_any("narrative") for unit in before)
    )


def _orders(units: Sequence[Unit], start: int) -> bool:
    verb = skip(units, start, "joins", "polite", "sequels")
    return verb < len(units) and is_verb(units[verb]) and not is_told(units, verb)


def verb_follows(units: Sequence[Unit], start: int) -> bool:
    place = skip(units, start, "joins", "polite", "sequels")
    return place > start and place < len(units) and is_verb(units[place])


def is_told(units: Sequence[Unit], verb: int) -> bool:
    """Whether the verb is part of a noun, or something that is told, by what stands behind it."""
    if verb + 1 >= len(units) or not units[verb + 1].is_any("noun_tails"):
        return False
    return not (units[verb].is_any("building") and units[verb + 1].is_any("written_things"))


def _english_cuts(units: Sequence[Unit]) -> Iterator[int]:
    """Before a comma or joining word where a new request or question begins."""
    first, index = 0, 1
    while index < len(units):
        begin = index
        while begin < len(units) and (units[begin].text == "," or units[begin].is_any("joins", "sequels")):
            begin += 1
        if units[index].is_any("done_first") and names_you(units[index]):
            yield index
            first = index
        joint = begin > index and (units[index].text == "," or units[index].is_any("joins"))
        if (
            joint
            and begin < len(units)
            and _begins(units, begin)
            and not _goes_on(units, first, index, begin)
        ):
            yield index
            first = begin
        index = max(begin, index + 1)


def names_you(unit: Unit) -> bool:
    return any(word[:3] == "you" for word in unit.text.split())


def _goes_on(units: Sequence[Unit], first: int, joint: int, begin: int) -> bool:
    """Whether the verb behind the joint belongs to what is said before it."""
    if _is_one_phrase(units, joint):
        return True
    subject = units[skip(units, first, "joins", "sequels")]
    return units[joint].text != "," and subject.is_any("pronouns") and is_verb(units[begin])


def _begins(units: Sequence[Unit], start: int) -> bool:
    if units[start].text in ("please", "pls", "plz") and start + 1 == len(units):
        return False
    if units[start].is_any("negations", "asking"):
        return True
    verb = skip(units, start, "polite")
    while verb < len(units) and units[verb].text.endswith("ly"):
        verb += 1
    return verb < len(units) and is_verb(units[verb]) and not is_told(units, verb)


def _is_one_phrase(units: Sequence[Unit], joint: int) -> bool:
    """Whether the verbs before the joint are part of a noun: "the create, read and write paths"."""
    place = joint - 1
    while place >= 1 and is_verb(units[place]) and not units[place].is_any("objects_first"):
        before = units[place - 1]
        if before.is_any("determiners") or (place > 1 and "to" in before.text.split(" ")):
            return True
        if before.text != "," and not before.is_any("joins"):
            return False
        place -= 2
    return False


def in_noun_list(units: Sequence[Unit], joint: int) -> bool:
    """The same in Chinese: "优化创建、更新和删除接口", "给创建和删除接口写文档"."""
    place = joint - 1
    while place >= 1 and is_verb(units[place]):
        before = units[place - 1]
        if before.is_any("handed", "attributive") or (is_verb(before) and not before.is_any("polite")):
            return True
        if not before.is_any("lists"):
            return False
        place -= 2
    return False
