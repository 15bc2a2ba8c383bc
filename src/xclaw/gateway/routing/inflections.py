"""English verbs that stand in another form or place than in an order, put back."""

from collections.abc import Iterator
from dataclasses import replace

from xclaw.gateway.routing.clauses import NEAR_UNITS, Clause, is_verb
from xclaw.gateway.routing.lexicon import Unit
from xclaw.gateway.routing.rules import RuleBook

_IRREGULAR = {
    "written": "write", "wrote": "write", "rewritten": "rewrite", "made": "make", "done": "do", "built": "build",
    "rebuilt": "rebuild", "sped": "speed", "found": "find", "sent": "send", "put": "put", "set": "set", "cut": "cut",
}  # fmt: skip
_SUBJECTS = frozenset(
    ("you", "we", "they", "he", "she", "i", "anyone", "anybody", "someone", "that", "which")
)
_NEEDED = frozenset(("needed", "wanted", "required"))
_PLEASE = frozenset(("please", "pls", "plz"))
_ONE = frozenset(("a", "an", "another", "one", "more", "some"))
_CAN = frozenset(("can", "could", "should", "would", "may", "must"))
_DUE = frozenset(("needs", "need", "need to", "should", "must", "have to", "has to"))


def base_forms(clause: Clause, place: int, book: RuleBook) -> Iterator[Clause]:
    """The clause with the verb that the word at `place` is a form of: as it is, or of "-ing" and "-ed"."""
    units = clause.units
    if place >= len(units):
        return
    for text in _bases(units[place].text):
        if place + 1 < len(units):
            whole = tuple(book.terms.units((text, *units[place + 1].text.split())))
            if len(whole) == 1 and is_verb(whole[0]):  # "sped up"
                yield replace(clause, units=(*units[:place], *whole, *units[place + 2 :]))
        unit = next(iter(book.terms.units((text,))))
        if is_verb(unit):
            yield replace(clause, units=(*units[:place], unit, *units[place + 1 :]))


def wanted_done(clause: Clause, place: int, book: RuleBook) -> Iterator[Clause]:
    """ "I need the docs updated" as "update the docs"."""
    units = clause.units
    for index in range(place + 1, min(len(units), place + NEAR_UNITS)):
        unit = units[index]
        if unit.text in _SUBJECTS or unit.is_any("prepositions", "joins", "questions"):
            return
        if index > place + 1 and _is_participle(unit):
            for put in base_forms(clause, index, book):
                moved = (*units[:place], put.units[index], *units[place + 1 : index], *put.units[index + 1 :])
                yield replace(clause, units=moved)


def needed_first(clause: Clause, place: int, book: RuleBook) -> Iterator[Clause]:
    """ "Documentation needed for this" as "need documentation for this"."""
    units = clause.units
    need = next(iter(book.terms.units(("need",))))
    if (
        place < len(units)
        and (units[place].text in _ONE or _is_object(units[place]))
        and any(unit.text in _PLEASE for unit in units)
    ):
        yield replace(clause, units=(*units[:place], need, *units[place:]))
    if (
        place < len(units)
        and units[place].text.endswith("ing")
        and any(unit.text == "would" for unit in units)
    ):
        yield from base_forms(clause, place, book)
    needed = next((index for index in range(place + 1, len(units)) if units[index].text in _NEEDED), None)
    if needed is None or any(unit.is_any("prepositions") for unit in units[place:needed]):
        return
    if units[place].text.endswith("ing"):
        yield from base_forms(clause, place, book)
    thing = tuple(unit for unit in units[place:needed] if unit.text not in ("is", "are"))
    yield replace(clause, units=(*units[:place], need, *thing, *units[needed + 1 :]))


def due_first(clause: Clause, place: int, book: RuleBook) -> Iterator[Clause]:
    """ "Can this be documented?", "the docs should be updated", "this needs a docstring" as orders."""
    units = clause.units
    asked = place < len(units) and units[place].text in _CAN
    subject = place + 1 if asked else place
    if subject >= len(units) or not units[subject].is_any("pronouns", "pointers", "determiners"):
        return
    marks = ("be",) if asked else _DUE
    ends = range(subject + 1, min(len(units), subject + NEAR_UNITS))
    mark = next((index for index in ends if units[index].text in marks), None)
    if mark is None:
        return
    about, verb = units[subject:mark], mark + 1
    while verb < len(units) and units[verb].text in ("to", "be", "get"):
        verb += 1
    if verb < len(units) and (_is_participle(units[verb]) or units[verb].text.endswith("ing")):
        for put in base_forms(clause, verb, book):
            yield replace(clause, units=(*units[:place], put.units[verb], *about, *put.units[verb + 1 :]))
    elif not asked and units[mark].text in ("needs", "need"):
        need, to = book.terms.units(("need", "for"))
        yield replace(clause, units=(*units[:place], need, *units[mark + 1 :], to, *about))


def _is_object(unit: Unit) -> bool:
    return any(name.startswith("object:") for name in unit.classes)


def _is_participle(unit: Unit) -> bool:
    return unit.text.endswith("ed") or unit.text in _IRREGULAR


def _bases(word: str) -> Iterator[str]:
    if word in _IRREGULAR:
        yield _IRREGULAR[word]
    for ending in ("ing", "ed"):
        stem = word.removesuffix(ending)
        if stem != word and len(stem) > 1:
            yield stem
            yield f"{stem}e"
            if stem[-1] == stem[-2]:
                yield stem[:-1]
            if stem[-1] == "i":
                yield f"{stem[:-1]}y"
    yield word
