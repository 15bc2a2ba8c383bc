"""What the rules make of a request: one expert, or nobody in particular; and why not each other rule."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xclaw.gateway.routing.clauses import Clause, clauses_of
from xclaw.gateway.routing.lexicon import Terms, Tokens, tokens_of
from xclaw.gateway.routing.readings import Reading, about_code, readings_of
from xclaw.gateway.routing.request_words import RequestWords, request_words
from xclaw.gateway.routing.rules import Rule, RuleBook

MAX_WORDS = 8
"""In a reason."""
SETTLED = ("it asks", "it has several steps", "there are no words")
"""How reasons begin after which no other router is asked."""


@dataclass(frozen=True, slots=True)
class Considered:
    """One rule: whether it took the request, by which words, or why it did not."""

    rule: str
    agent: str
    matched: bool
    words: tuple[str, ...] = ()
    why_not: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`rule` is the one that decides, None when the orchestrator should."""

    rule: Rule | None
    reason: str
    considered: tuple[Considered, ...]
    settled: bool = False
    """Without a rule: it is certain that the request is for no single agent."""


def judge(text: str, book: RuleBook, is_available: Callable[[str], bool]) -> Verdict:
    """The verdict of the rules on `text`. Bounded time whatever `text` is; never raises."""
    request = request_words(text, book.folding)
    clauses = clauses_of(request, book)
    readings = readings_of(clauses, book)
    general = _not_for_an_expert(request, clauses, readings, book)
    hits = _hits(readings, book)
    found = _own_rule(book, hits, readings, general) or _expert(book, hits, general)
    if found is not None and not is_available(found.agent):
        general = f"there is no agent {found.agent!r} here"
        found = None
    if found is None and not general:
        wanted = [rule.name for rule in book.rules if hits[rule.name]]
        general = f"it asks several experts: {', '.join(wanted)}" if wanted else "no rule fits"
    considered = tuple(_considered(rule, found, hits[rule.name], general) for rule in book.rules)
    if found is None:
        return Verdict(None, general, considered, general.startswith(SETTLED))
    words = ", ".join(repr(word) for word in hits[found.name][:MAX_WORDS])
    return Verdict(found, f"rule {found.name!r} by {words}", considered)


def _considered(rule: Rule, found: Rule | None, words: tuple[str, ...], general: str) -> Considered:
    if rule == found:
        return Considered(rule.name, rule.agent, True, words)
    if not words:
        why = "none of its words asks for anything here"
    elif found is not None:
        why = f"rule {found.name!r} comes first"
    else:
        why = general
    return Considered(rule.name, rule.agent, False, words, why)


def _not_for_an_expert(
    request: RequestWords, clauses: Sequence[Clause], readings: Sequence[Reading], book: RuleBook
) -> str:
    """Why the request is nothing for a single expert whatever it is about; empty when it may be."""
    if not clauses:
        return "there are no words outside code and quotations"
    if _is_talk(request, book) or _is_definition(clauses):
        return "it asks what words mean"
    steps = _steps(readings)
    if len(steps) > 1:
        return "it has several steps: " + ", ".join(repr(verb) for verb in steps.values())
    if any(reading.act and reading.act.kind == "building" for reading in readings):
        return f"it wants something made or changed: {next(iter(steps.values()))!r}"
    if steps and any(map(_is_unknown_step, readings[1:])):
        return "it has several steps"
    units = [unit for clause in clauses for unit in clause.units]
    elsewhere = next((unit.text for unit in units if unit.is_any("elsewhere")), None)
    if elsewhere and not any(map(about_code, clauses)):
        return f"it is about something else: {elsewhere!r}"
    return ""


def _is_talk(request: RequestWords, book: RuleBook) -> bool:
    text = " ".join(request.tokens)
    for phrase in book.talk:
        place = 0
        for part in phrase:
            found = f" {text} ".find(f" {' '.join(part)} ", place)
            if found < 0:
                break
            place = found + 1
        else:
            return True
    return False


def _is_definition(clauses: Sequence[Clause]) -> bool:
    """ "What is XSS?": nothing but a rule's words is asked about."""
    units = [unit for clause in clauses for unit in clause.units if unit.text != ","]
    if len(clauses) > 1 or not any(unit.is_any("definitions") for unit in units):
        return False
    rest = [unit for unit in units if not unit.is_any("definitions", "fillers", "polite", "joins")]
    return bool(rest) and all(
        any(
            name.startswith(("topic:", "code_topic:", "weak_topic:", "verb:", "object:"))
            for name in unit.classes
        )
        for unit in rest
    )


def _steps(readings: Sequence[Reading]) -> dict[tuple[str, str], str]:
    """The different kinds of work, each with the word that asks for it."""
    steps: dict[tuple[str, str], str] = {}
    for reading in readings:
        act = reading.act
        if act is not None and act.kind in ("expert", "building", "working"):
            steps.setdefault((act.kind, act.rule), act.verb)
    return steps


def _is_unknown_step(reading: Reading) -> bool:
    """ "…, then frobnicate it": it comes after the expert's work, and nobody knows what it is."""
    clause = reading.clause
    if (
        not clause.sequel
        or reading.act is not None
        or clause.question
        or reading.topics
        or reading.weak_topics
    ):
        return False
    rest = [
        unit
        for unit in clause.units
        if not unit.is_any("joins", "sequels", "polite", "particles") and unit.text != ","
    ]
    return bool(rest) and not rest[0].is_any("pronouns", "pointers")


def _hits(readings: Sequence[Reading], book: RuleBook) -> dict[str, tuple[str, ...]]:
    """By rule, the words by which it would take the request, if nothing else stood against it.

    Weak words count where no rule has stronger ones.
    """
    hits: dict[str, list[str]] = {rule.name: [] for rule in book.rules}
    for name, wanted in book.words.items():
        hits[name] += _plain_words(wanted, book.unless.get(name), readings)
    for reading in readings:
        if reading.act is not None and reading.act.rule:
            hits[reading.act.rule] += reading.act.words
        for name, word in reading.topics:
            hits[name].append(word)
    _drop_covered(hits, readings, book)
    strong = {name for name, words in hits.items() if words}
    for name, word in (topic for reading in readings for topic in reading.weak_topics):
        if not strong or name in strong:
            hits[name].append(word)
    return {name: tuple(dict.fromkeys(words)) for name, words in hits.items()}


def _drop_covered(hits: dict[str, list[str]], readings: Sequence[Reading], book: RuleBook) -> None:
    """Take away topics that are part of what another rule was asked for by its verb."""
    if any(reading.clause.sequel and (reading.act or reading.topics) for reading in readings):
        return
    asked = {reading.act.rule for reading in readings if reading.act is not None}
    for rule in book.rules:
        for name in rule.covers if rule.name in asked else ():
            if name in hits and name not in asked:
                hits[name].clear()


def _plain_words(wanted: Terms, unless: Terms | None, readings: Sequence[Reading]) -> list[str]:
    found: list[str] = []
    for reading in readings:
        tokens = _tokens(reading.clause)
        if unless is not None and next(iter(unless.found(tokens)), None) is not None:
            return []
        if reading.act is None or reading.act.kind != "negated":
            found += wanted.found(tokens)
    return found


def _tokens(clause: Clause) -> Tokens:
    """A clause as the tokens that its terms were made of."""
    return tuple(token for unit in clause.units for token in tokens_of(unit.text))


def _own_rule(
    book: RuleBook, hits: dict[str, tuple[str, ...]], readings: Sequence[Reading], general: str
) -> Rule | None:
    """A rule with plain words: it may also want something made, but only one thing."""
    if len(_steps(readings)) > 1 or general.startswith("it asks"):
        return None
    return next((rule for rule in book.rules if rule.words and hits[rule.name]), None)


def _expert(book: RuleBook, hits: dict[str, tuple[str, ...]], general: str) -> Rule | None:
    found = [rule for rule in book.rules if hits[rule.name]]
    return found[0] if len(found) == 1 and not general else None
