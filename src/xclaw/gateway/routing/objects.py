"""What a verb is about: the head of its object, in English and in Chinese."""

from collections.abc import Iterator, Sequence

from xclaw.gateway.routing.clauses import NEAR_UNITS, Clause, is_verb, skip
from xclaw.gateway.routing.lexicon import Unit

MADE = "made_things"
OPENING_UNITS = 6
"""How far behind the verb an object may stand that a description follows."""


def named_object(clause: Clause, verb: int, ask: str) -> tuple[str, ...] | None:
    """The words of the object that `ask` ("rule:number") wants, or None when the verb is about something else."""
    wanted = f"object:{ask}"
    if clause.chinese:
        described = _object_units(clause.units, verb)
        if all(unit.is_any("ones", "particles") for unit in described):
            described = _told_before(clause) or described
        return _chinese_object(described, wanted)
    described = clause.units[verb + 1 :]
    if all(
        unit.is_any("objects_first", "ones", "tail_words", "particles") or unit.text == "in"
        for unit in described
    ):
        return _wanted_in(_told_before(clause), wanted)
    return _english_object(described, wanted, f"part:{ask}")


def behind(clause: Clause, verb: int, ask: str) -> int | None:
    """The place of the word that stands before the object: "turn it *into* docs"; None without one."""
    places = range(verb + 1, min(len(clause.units), verb + NEAR_UNITS))
    return next((place for place in places if clause.units[place].is_any(f"behind:{ask}")), None)


def _told_before(clause: Clause) -> Sequence[Unit]:
    """What "it" means: "The README is outdated, please update it"; nothing after another order."""
    units = clause.before
    asks = any(
        is_verb(unit)
        and not any(name.startswith("topic:") for name in unit.classes)
        and not (index and units[index - 1].is_any("attributive", "questions"))
        for index, unit in enumerate(units)
    )
    return () if asks else units


def is_made(clause: Clause, verb: int) -> bool:
    """Whether the object is a thing that is made of code."""
    if not clause.chinese:
        return any(_head(phrase).is_any(MADE) for phrase in _phrases(clause.units[verb + 1 :]))
    described = _object_units(clause.units, verb)
    if described and is_verb(described[0]) and not described[0].is_any("measures"):
        return False
    return any(unit.is_any(MADE) for unit in _after_particle(described))


def _english_object(units: Sequence[Unit], wanted: str, part: str) -> tuple[str, ...] | None:
    found: list[str] = []
    phrases = list(_phrases(units))
    joined = any(unit.is_any("lists") for unit in units)
    for phrase in phrases:
        head = _head(phrase)
        if head.is_any(wanted):
            found.append(head.text)
        elif head.is_any(part) and (whole := _wanted_in(units, wanted)):
            found += (*whole, head.text)
        elif head.is_any(MADE, "elsewhere") or (joined and head.text and (found or len(phrase) > 1)):
            return None  # something else is wanted too
    return tuple(dict.fromkeys(found)) or None


def _phrases(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    """The objects that are put side by side, each without what says which one."""
    phrase: list[Unit] = []
    for unit in units[skip(units, 0, "objects_first") :]:
        if unit.is_any("prepositions") and phrase:
            break
        if unit.is_any("lists") or unit.text in (",", "/"):
            if phrase:
                yield phrase
            phrase = []
        else:
            phrase.append(unit)
    if phrase:
        yield phrase


def _head(phrase: Sequence[Unit]) -> Unit:
    """The noun at the end of an English phrase."""
    for unit in reversed(phrase):
        if not unit.is_any("tail_words"):
            return unit
    return Unit("")


def _chinese_object(described: Sequence[Unit], wanted: str) -> tuple[str, ...] | None:
    head = _after_particle(described)
    found = _wanted_in(head, wanted)
    if (
        found is None
        and len(head) < len(described)
        and not any(unit.is_any(MADE, "elsewhere") for unit in head)
    ):
        return _wanted_at_start(described, wanted)
    return found


def _wanted_in(head: Sequence[Unit], wanted: str) -> tuple[str, ...] | None:
    """The wanted nouns among those put side by side; None when one of them is a thing of another kind."""
    found: list[str] = []
    for phrase in _side_by_side(head):
        place = max((index for index, unit in enumerate(phrase) if unit.is_any(wanted)), default=None)
        rest = phrase if place is None else phrase[place + 1 :]
        if any(unit.is_any(MADE, "elsewhere") for unit in rest):
            return None
        if place is not None:
            if any(unit.is_any("about") for unit in phrase[:place]):
                return None
            found.append(phrase[place].text)
    return tuple(found) or None


def _wanted_at_start(described: Sequence[Unit], wanted: str) -> tuple[str, ...] | None:
    """ "写一份文档介绍这个项目的架构": the object, then what it should say."""
    for index, unit in enumerate(described[:OPENING_UNITS]):
        if unit.is_any(wanted):
            following = described[index + 1] if index + 1 < len(described) else Unit("")
            plain = all(before.is_any("measures") for before in described[:index])
            return (unit.text,) if plain and following.text != "的" and not following.is_any(MADE) else None
    return None


def _side_by_side(units: Sequence[Unit]) -> Iterator[list[Unit]]:
    phrase: list[Unit] = []
    for unit in units:
        if unit.is_any("lists"):
            yield phrase
            phrase = []
        else:
            phrase.append(unit)
    yield phrase


def _object_units(units: Sequence[Unit], verb: int) -> Sequence[Unit]:
    """What stands behind the verb; behind "把"; or, with neither, before the verb."""
    if any(name.startswith("behind:") for name in units[verb].classes):
        return _trimmed(units[verb + 1 :])
    moved = max((index for index, unit in enumerate(units[:verb]) if unit.is_any("moved")), default=None)
    if moved is not None:
        return _trimmed(units[moved + 1 : verb])
    behind = _trimmed(units[verb + 1 :])
    return behind or _trimmed(units[skip(units, 0, "polite") : verb])


def _trimmed(units: Sequence[Unit]) -> Sequence[Unit]:
    end = len(units)
    while end and units[end - 1].is_any("particles", "tail_words"):
        end -= 1
    return units[:end]


def _after_particle(units: Sequence[Unit]) -> Sequence[Unit]:
    """The noun that everything before the last "的" describes."""
    place = max((index for index, unit in enumerate(units[:-1]) if unit.text == "的"), default=-1)
    return units[place + 1 :]
