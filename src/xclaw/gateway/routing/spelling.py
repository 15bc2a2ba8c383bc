"""Slips of the keyboard in the words of rules: "reveiw", "documnet", "complexty"."""

from collections.abc import Iterable, Iterator, Mapping

from xclaw.gateway.routing.lexicon import Tokens

SHORTEST_SWAPPED, SHORTEST_LOST, SHORTEST_VOWEL = 5, 6, 10
"""Letters of a word in which two may be swapped, one may be lost or doubled, or a vowel may be another."""
_VOWELS = "aeiou"
_REAL_WORDS = frozenset(
    ("compete", "crate", "finnish", "inert", "inset", "selling", "sower", "sting", "strat", "taper", "treat")
)
"""Words of their own that look like a slip in another."""


def slips(words: Iterable[str], known: frozenset[str]) -> Mapping[str, str]:
    """From a misspelling to the word that is meant; none that is a word in `known`, or could mean two."""
    meant: dict[str, str] = {}
    unclear: set[str] = set()
    for word in words:
        for slip in set(_slips_of(word)) - known - _REAL_WORDS:
            if meant.setdefault(slip, word) != word:
                unclear.add(slip)
    return {slip: word for slip, word in meant.items() if slip not in unclear}


def corrected(tokens: Tokens, meant: Mapping[str, str]) -> Tokens:
    return tuple(meant.get(token, token) for token in tokens)


def _slips_of(word: str) -> Iterator[str]:
    """None adds or changes a letter at either end: so "preview" is no slip, nor is "optimism"."""
    inner = range(1, len(word) - 1)
    if len(word) >= SHORTEST_SWAPPED:
        for index in range(len(word) - 1):
            yield word[:index] + word[index + 1] + word[index] + word[index + 2 :]
    if len(word) >= SHORTEST_LOST + 2 * word.endswith("s"):  # "modes" are no "models"
        for index in inner:
            yield word[:index] + word[index + 1 :]
            yield word[:index] + word[index] + word[index:]
    if len(word) >= SHORTEST_VOWEL:
        for index in inner:
            if word[index] in _VOWELS:
                for vowel in _VOWELS:
                    yield word[:index] + vowel + word[index + 1 :]
