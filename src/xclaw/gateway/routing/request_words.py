"""A request's own words, cut into sentences: what the rules look at."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xclaw.gateway.routing.lexicon import Folding, Tokens, tokens_of
from xclaw.gateway.routing.own_text import CODE, own_text

OWN_HEAD, OWN_TAIL = 3_000, 1_500
"""Of one's own words, what is looked at: people say what they want first or last."""
LONGEST_WORD = 120
"""A longer run of letters and signs is data."""

_DOCUMENTS = re.compile(
    r"(?:.*[/\\])?(readme|changelog|contributing|docs?|documentation)(?:\.\w{1,8}|/(?:[\w.-]+/)*[\w-]+\.(?:md|mdx|rst|adoc))?/?\Z",
    re.I,
)
_EXTENSION = re.compile(
    r".*[\w)\]*]\.(?:py|pyi|ipynb|js|mjs|cjs|jsx|ts|tsx|go|rs|java|kt|scala|c|h|cc|cpp|hpp|cs|rb|php|swift|m|sh|bash|zsh"
    r"|ps1|sql|html?|css|scss|vue|svelte|json|ya?ml|toml|ini|cfg|xml|md|rst|txt|csv|tsv|pdf|docx?|xlsx?|log|lock|proto"
    r"|lua|pl|r|jl|ex|exs|erl|hs|clj|dart|tf|gradle|diff|patch|png|jpe?g|svg|zip|env)\Z",
    re.I,
)
_IDENTIFIER = re.compile(
    r"\w+_\w+|_+\w+|[a-hj-z]\w*[a-z][A-Z]\w*|\w+\(\S*\)?|--?[A-Za-z][\w-]*|[A-Za-z_]\w*(?:\.[a-z_]\w*){2,}|@[\w.]+"
)
_ADDRESS = re.compile(r"[^\s@]+@[^\s@]+\.\w+\Z|\w+://")
_WRITTEN = re.compile(r"[!-~]+")
_EDGES = ",.;:!?()[]<>{}*~\"'"
_NUMBERED = re.compile(
    r"(?m)^[ \t]*(?:#{1,6}[ \t]|[-*+•·][ \t]+(?:\[[ x]\][ \t])?)|[\u2460-\u2473\u2776-\u277f]|(?<![^\s,;:,:;、。])\(?\d{1,2}[.)、](?=[\s\u3400-\u9fff])"
)
_ENDS = frozenset(".;:!?。…\n")
_ARROWS = frozenset(("→", "⇒", "->", "=>"))


@dataclass(frozen=True, slots=True)
class Sentence:
    """Tokens up to a mark that ends them."""

    tokens: Tokens
    end: str
    """The mark: `?`, `:`, `→` and so on; empty at the end of the text."""
    after_arrow: bool = False

    @property
    def chinese(self) -> bool:
        return any("\u3400" <= token[0] <= "\u9fff" for token in self.tokens)


@dataclass(frozen=True, slots=True)
class RequestWords:
    """What a person said in a request."""

    sentences: tuple[Sentence, ...]

    @property
    def tokens(self) -> Tokens:
        return tuple(token for sentence in self.sentences for token in (*sentence.tokens, "\n"))


def request_words(text: str, folding: Folding) -> RequestWords:
    """The own words of `text`, folded. Takes time by the length of `text` once, and bounded work on the rest."""
    own = own_text(text)
    if len(own) > OWN_HEAD + OWN_TAIL:
        own = f"{own[:OWN_HEAD]}\n{own[-OWN_TAIL:]}"
    own = _NUMBERED.sub("\n", _WRITTEN.sub(_named, own))
    return RequestWords(tuple(_sentences(tokens_of(folding.fold(own)[: OWN_HEAD + OWN_TAIL]))))


def _named(found: re.Match[str]) -> str:
    """A run of printable ASCII, with paths, addresses and identifiers replaced by a mark."""
    word = found[0]
    core = word.strip(_EDGES)
    if not core:
        return word
    if core.startswith("O("):
        return f" big o {word[-1] if word[-1] in ',.;:!?' else ''} "
    if len(core) > LONGEST_WORD:
        return f" {CODE} "
    start = word.index(core)
    before, after = word[:start], word[start + len(core) :]
    document = _DOCUMENTS.match(core)
    if document is not None:
        return f"{before}{document[1]}{after}"
    if (
        _ADDRESS.match(core)
        or _EXTENSION.match(core)
        or _is_path(core)
        or _IDENTIFIER.fullmatch(word.strip(",.;:!?\"'"))
    ):
        return f"{before} {CODE} {after}"
    return _spaced_stops(word)


def _is_path(word: str) -> bool:
    return (word.startswith(("./", "../", "~/", "/")) and len(word) > 2) or word.count("/") >= 2


def _spaced_stops(word: str) -> str:
    """A dot inside a word ends no sentence (`v2.1`)."""
    return re.sub(r"\.(?=\d)", " ", word)


def _sentences(tokens: Sequence[str]) -> Iterator[Sentence]:
    begun: list[str] = []
    after_arrow = False
    for token in tokens:
        arrow = token in _ARROWS
        if not arrow and token not in _ENDS:
            begun.append(token)
            continue
        if begun:
            yield Sentence(tuple(begun), token, after_arrow)
        elif arrow:
            continue
        begun, after_arrow = [], arrow
    if begun:
        yield Sentence(tuple(begun), "", after_arrow)
