"""The words that rules are made of, found in text: the longest term first, Latin words as a whole."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from xclaw.contracts.unicode_forms import normal_form
from xclaw.gateway.routing.own_text import CODE, QUOTED

_TOKEN = re.compile(
    rf"[a-zß-ɏ]+(?:'[a-zß-ɏ]+)*|\d+|[\u3400-\u9fff\uf900-\ufaff]|[{CODE}{QUOTED}]"
    r"|[-=]>|[.,;:!?。、…→⇒\n/&+]|[^\W\d_a-zß-ɏ\u3400-\u9fff]+"
)
Tokens = tuple[str, ...]
MAX_TERM_TOKENS = 12
PLURAL_CLASSES = frozenset(
    {"code_nouns", "made_things", "elsewhere", "object", "part", "topic", "code_topic", "weak_topic"}
)


@dataclass(frozen=True, slots=True)
class Unit:
    """A term of the lexicon as it stands in a text, or a token that is in none."""

    text: str
    classes: frozenset[str] = frozenset()

    def is_any(self, *names: str) -> bool:
        return any(name in self.classes for name in names)


@dataclass(frozen=True, slots=True)
class Folding:
    """Other ways to write the same: traditional characters, regional words. None of them is ASCII."""

    characters: Mapping[int, str]
    words: tuple[tuple[str, str], ...]

    def fold(self, text: str) -> str:
        """`text` in lower case, half width and simplified characters."""
        if text.isascii():  # most terms of the rules are, and there are thousands
            return text.lower()
        folded = normal_form("NFKC", text).casefold().translate(self.characters)
        for regional, usual in self.words:
            folded = folded.replace(regional, usual)
        return folded


def tokens_of(folded: str) -> Tokens:
    """Words, numbers, single Chinese characters and punctuation of folded text."""
    return tuple(_TOKEN.findall(folded))


class Terms:
    """A fixed set of terms, each with its classes. Owns no text."""

    def __init__(self, terms: Iterable[tuple[Tokens, str]]) -> None:
        """Takes terms as pairs of tokens and class; the same term may come several times."""
        classes: dict[Tokens, set[str]] = {}
        for tokens, name in terms:
            classes.setdefault(tokens, set()).add(name)
            if name.split(":")[0] in PLURAL_CLASSES:
                for plural in _plurals(tokens):
                    classes.setdefault(plural, set()).add(name)
        self.words = frozenset(token for tokens in classes for token in tokens)
        """Every word that is part of a term."""
        self._by_first: dict[str, list[tuple[Tokens, frozenset[str]]]] = {}
        for tokens in sorted(classes, key=len, reverse=True):
            self._by_first.setdefault(tokens[0], []).append((tokens, frozenset(classes[tokens])))

    def units(self, tokens: Sequence[str]) -> Iterator[Unit]:
        """The whole of `tokens`, cut into the longest terms from left to right."""
        position = 0
        while position < len(tokens):
            found = self._at(tokens, position)
            if found is None:
                yield Unit(tokens[position])
                position += 1
            else:
                yield Unit(spelled(found[0]), found[1])
                position += len(found[0])

    def found(self, tokens: Sequence[str]) -> Iterator[str]:
        """The terms that stand anywhere in `tokens`, also inside one another."""
        for position in range(len(tokens)):
            found = self._at(tokens, position)
            if found is not None:
                yield spelled(found[0])

    def _at(self, tokens: Sequence[str], position: int) -> tuple[Tokens, frozenset[str]] | None:
        for term, classes in self._by_first.get(tokens[position], ()):
            if tuple(tokens[position : position + len(term)]) == term:
                return term, classes
        return None


def spelled(tokens: Sequence[str]) -> str:
    """Tokens as a person would write them."""
    text = " ".join(tokens)
    return re.sub(r"(?<=[\u3400-\u9fff]) (?=[\u3400-\u9fff])", "", text)


def _plurals(tokens: Tokens) -> Iterator[Tokens]:
    """The plural, and what belongs to it: "the market's"."""
    last = tokens[-1]
    if last[-1] < "a" or last[-1] > "z" or last.endswith("s"):
        return
    yield (*tokens[:-1], f"{last}'s")
    yield (*tokens[:-1], last + ("es" if last.endswith(("x", "ch", "sh")) else "s"))
    if last.endswith("y"):
        yield (*tokens[:-1], last[:-1] + "ies")
