"""Rules as data: which words send a request to which expert, read from TOML."""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import UsageError
from xclaw.gateway.routing.lexicon import MAX_TERM_TOKENS, Folding, Terms, Tokens, tokens_of
from xclaw.gateway.routing.spelling import slips

BUILT_IN = "built-in"
MAX_FILE_BYTES = 256_000
MAX_TERMS = 5_000
MAX_RULES = 200
MAX_TERM = 80

_NOT_TERMS = frozenset(("talk", "folded"))
"""Of `[words]`, what is no list of terms."""
_RULE_KEYS = frozenset(
    (
        "name",
        "agent",
        "words",
        "unless",
        "asks",
        "topics",
        "code_topics",
        "weak_topics",
        "examples",
        "covers",
        "off",
    )
)
_ASK_KEYS = frozenset(("verbs", "objects", "parts", "behind"))


@dataclass(frozen=True, slots=True)
class Ask:
    """A verb that asks for an expert: by itself, or with one of these objects."""

    verbs: tuple[str, ...]
    objects: tuple[str, ...] = ()
    parts: tuple[str, ...] = ()
    """Parts of an object, which count when the object is named beside them."""
    behind: tuple[str, ...] = ()
    """Words of which one stands before the object: "turn it *into* a README"."""


@dataclass(frozen=True, slots=True)
class Rule:
    """When a request is for `agent`."""

    name: str
    agent: str
    source: str = BUILT_IN
    """The file, or "built-in"."""
    words: tuple[str, ...] = ()
    """Any of these anywhere in the request is enough."""
    unless: tuple[str, ...] = ()
    """None of these may be there."""
    asks: tuple[Ask, ...] = ()
    topics: tuple[str, ...] = ()
    """What a question or an order may be about."""
    code_topics: tuple[str, ...] = ()
    """The same, where something is told to be looked at, or where the request is also about code."""
    weak_topics: tuple[str, ...] = ()
    """The same, where the request is also about code or about "this", and where there is no better word."""
    covers: tuple[str, ...] = ()
    """Rules whose topics are part of what this one's verbs ask for."""
    examples: tuple[str, ...] = ()
    """Whole requests, for the router that compares by meaning."""


@dataclass(frozen=True, slots=True)
class RuleBook:
    """All rules in order, with the words that they and the reading of requests are made of."""

    rules: tuple[Rule, ...]
    terms: Terms = field(repr=False)
    folding: Folding = field(repr=False)
    words: Mapping[str, Terms] = field(repr=False)
    """The plain words of the rules that have some."""
    unless: Mapping[str, Terms] = field(repr=False)
    talk: tuple[tuple[Tokens, ...], ...]
    """Phrases that ask about words; each in parts that follow one another."""
    spelling: Mapping[str, str] = field(repr=False)
    """From misspelt words of the rules to what is meant."""

    def rule(self, name: str) -> Rule:
        return next(rule for rule in self.rules if rule.name == name)

    def folded(self, text: str) -> Tokens:
        return tokens_of(self.folding.fold(text))


def load_rules(files: Iterable[str | Path] = ()) -> RuleBook:
    """The built-in rules, and in front of them those of `files`, the last file first.

    A rule with the name of an earlier one takes its place; `off = true` only takes it away.

    Raises:
        UsageError: a file cannot be read or is wrong; names the file, the rule and the reason.
    """
    own_files = tuple(files)
    if not own_files:
        return _built_in_book()
    built_in, words = _built_in()
    rules = list(built_in)
    for file in own_files:
        own = _read(Path(file))
        _known(own, frozenset(("rules", "masks")), str(file))
        named = _rules_of(own, str(file))
        off = {str(entry["name"]) for entry in _tables(own, "rules", str(file)) if entry.get("off") is True}
        replaced = {rule.name for rule in named} | off
        rules = [
            *(rule for rule in named if rule.name not in off),
            *(rule for rule in rules if rule.name not in replaced),
        ]
        words = {**words, "masks": [*_texts(words, "masks", BUILT_IN), *_texts(own, "masks", str(file))]}
    return _book(tuple(rules), words)


@cache
def _built_in_book() -> RuleBook:
    """One for the whole process: nobody changes it, and making it takes 30 ms."""
    return _book(*_built_in())


@cache
def _built_in() -> tuple[tuple[Rule, ...], Mapping[str, object]]:
    text = (resources.files("xclaw.gateway.routing") / "expert_rules.toml").read_text(encoding="utf-8")
    table = tomllib.loads(text)
    return tuple(_rules_of(table, BUILT_IN)), cast("dict[str, object]", table["words"])


def _book(rules: tuple[Rule, ...], words: Mapping[str, object]) -> RuleBook:
    folded = cast("Mapping[str, object]", words["folded"])
    letters = cast("str", folded["characters"])
    characters = {ord(letters[index]): letters[index + 1] for index in range(0, len(letters), 2)}
    pairs = cast("list[list[str]]", folded["words"])
    folding = Folding(characters, tuple((old, new) for old, new in pairs))
    terms = [(tokens_of(folding.fold(term)), name) for term, name in _classed(rules, words)]
    talk = tuple(
        tuple(tokens_of(folding.fold(part)) for part in phrase.split("…"))
        for phrase in _texts(words, "talk", BUILT_IN)
    )
    plain = {rule.name: _plain(rule.words, folding) for rule in rules if rule.words}
    unless = {rule.name: _plain(rule.unless, folding) for rule in rules if rule.unless}
    found = Terms([*terms, *_inherited(terms)])
    return RuleBook(rules, found, folding, plain, unless, talk, _spelling(terms, found.words))


def _spelling(terms: Sequence[tuple[Tokens, str]], known: frozenset[str]) -> Mapping[str, str]:
    spelt = {token for tokens, name in terms if ":" in name for token in tokens if token.isascii()}
    spelt.add("please")  # nothing is seen of a request that begins with an unknown word
    spelt |= {f"{token}s" for token in spelt if not token.endswith("ed")} & known
    return slips(sorted(token for token in spelt if token.isalpha()), known)


def _inherited(terms: Sequence[tuple[Tokens, str]]) -> Iterator[tuple[Tokens, str]]:
    """What ends in a shorter term of the same rule is one of its kind: "代码审查" is an "审查"."""
    by_tokens: dict[Tokens, set[str]] = {}
    for tokens, name in terms:
        if ":" in name:
            by_tokens.setdefault(tokens, set()).add(name)
    for tokens, names in by_tokens.items():
        rules = {name.split(":")[1] for name in names}
        for begin in range(1, len(tokens)):
            for name in by_tokens.get(tokens[begin:], ()):
                if name.split(":")[1] in rules:
                    yield tokens, name


def _plain(words: Iterable[str], folding: Folding) -> Terms:
    return Terms((tokens_of(folding.fold(word)), "object") for word in words)


def _classed(rules: Sequence[Rule], words: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Each term with the class in which it stands."""
    for name in sorted(words.keys() - _NOT_TERMS):
        yield from ((term, name) for term in _texts(words, name, BUILT_IN))
    for rule in rules:
        yield from ((term, f"topic:{rule.name}") for term in rule.topics)
        yield from ((term, f"code_topic:{rule.name}") for term in rule.code_topics)
        yield from ((term, f"weak_topic:{rule.name}") for term in rule.weak_topics)
        for index, ask in enumerate(rule.asks):
            yield from ((term, f"verb:{rule.name}:{index}") for term in ask.verbs)
            yield from ((term, f"object:{rule.name}:{index}") for term in ask.objects)
            yield from ((term, f"part:{rule.name}:{index}") for term in ask.parts)
            yield from ((term, f"behind:{rule.name}:{index}") for term in ask.behind)
            yield from ((term, f"topic:{rule.name}") for term in ask.objects if _has_topic(term, rule))


def _has_topic(term: str, rule: Rule) -> bool:
    """ "performance tuning" is about what "performance" is about."""
    return any(topic in term for topic in (*rule.topics, *rule.code_topics))


def _read(path: Path) -> dict[str, object]:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path}: a rules file may have {MAX_FILE_BYTES:,} bytes; make it shorter.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"{path}: the rules cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path}: the rules are not UTF-8 text. Save the file as UTF-8.") from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise UsageError(f"{path}: the rules are no TOML: {error}.") from None


def _rules_of(table: Mapping[str, object], source: str) -> list[Rule]:
    entries = _tables(table, "rules", source)
    if len(entries) > MAX_RULES:
        raise UsageError(f"{source}: {len(entries)} rules; there may be {MAX_RULES}.")
    rules = [_rule_of(entry, index, source) for index, entry in enumerate(entries, 1)]
    names = [rule.name for rule in rules]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{source}: two rules are called {name!r}; rename one.")
    count = sum(
        len(terms)
        for rule in rules
        for terms in (rule.words, rule.topics, rule.code_topics, rule.weak_topics)
    )
    if count > MAX_TERMS:
        raise UsageError(f"{source}: {count:,} words; there may be {MAX_TERMS:,}.")
    return rules


def _rule_of(entry: Mapping[str, object], index: int, source: str) -> Rule:
    name = _name(entry, "name", f"{source}: rule {index}")
    where = f"{source}: rule {name!r}"
    _known(entry, _RULE_KEYS, where)
    off = entry.get("off", False)
    if not isinstance(off, bool):
        raise UsageError(f"{where}: `off` should be true or false, not {off!r}.")
    if off:
        return Rule(name, "", source)
    rule = Rule(
        name,
        _name(entry, "agent", where),
        source,
        words=_texts(entry, "words", where),
        unless=_texts(entry, "unless", where),
        asks=tuple(_ask_of(ask, where) for ask in _tables(entry, "asks", where)),
        topics=_texts(entry, "topics", where),
        code_topics=_texts(entry, "code_topics", where),
        weak_topics=_texts(entry, "weak_topics", where),
        covers=_texts(entry, "covers", where),
        examples=_texts(entry, "examples", where, 500),
    )
    if not (rule.words or rule.asks or rule.topics or rule.code_topics or rule.weak_topics or rule.examples):
        raise UsageError(f"{where}: it matches nothing. Give it `words`, `asks`, `topics` or `examples`.")
    return rule


def _ask_of(entry: Mapping[str, object], where: str) -> Ask:
    _known(entry, _ASK_KEYS, f"{where}, `asks`")
    verbs = _texts(entry, "verbs", f"{where}, `asks`")
    if not verbs:
        raise UsageError(f"{where}, `asks`: `verbs` is missing. Add it.")
    objects = _texts(entry, "objects", f"{where}, `asks`")
    parts, behind = (_texts(entry, key, f"{where}, `asks`") for key in ("parts", "behind"))
    if behind and not objects:
        raise UsageError(f"{where}, `asks`: `behind` needs `objects`. Add them.")
    return Ask(verbs, objects, parts, behind)


def _known(entry: Mapping[str, object], keys: frozenset[str], where: str) -> None:
    for key in entry:
        if key not in keys:
            raise UsageError(f"{where}: there is no `{key}`. Known: {', '.join(sorted(keys))}.")


def _tables(table: Mapping[str, object], key: str, where: str) -> list[Mapping[str, object]]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in cast("list[object]", value)):
        raise UsageError(f"{where}: `{key}` should be tables, each written as [[{key}]].")
    return cast("list[Mapping[str, object]]", value)


def _name(entry: Mapping[str, object], key: str, where: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_TERM or not value.isprintable():
        raise UsageError(f"{where}: `{key}` should be a name, not {str(value)[:40]!r}.")
    if ":" in value:
        raise UsageError(f"{where}: there may be no colon in `{key}`: {value!r}.")
    return value.strip()


def _texts(entry: Mapping[str, object], key: str, where: str, longest: int = MAX_TERM) -> tuple[str, ...]:
    value = entry.get(key, [])
    if not isinstance(value, list):
        raise UsageError(f"{where}: `{key}` should be a list of words, not {str(value)[:40]!r}.")
    for term in cast("list[object]", value):
        if not isinstance(term, str) or len(term) > longest:
            raise UsageError(
                f"{where}: {str(term)[:40]!r} in `{key}` should be a text of at most {longest} characters."
            )
        if (
            not 1
            <= len(tokens_of(term.casefold()))
            <= (MAX_TERM_TOKENS * 4 if longest == MAX_TERM else longest)
        ):
            raise UsageError(f"{where}: {term[:40]!r} in `{key}` has no word in it, or too many.")
    return tuple(cast("list[str]", value))
