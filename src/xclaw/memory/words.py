"""From text to words that can be looked up, in English and Chinese, and from a query to a safe one.

Chinese has no spaces: it is cut by a dictionary, and its single characters and pairs are kept beside
the words, so that another cut of the same text still meets it.
"""

import re
from dataclasses import dataclass

from xclaw.contracts.unicode_forms import normal_form

QUERY_CHARACTERS = 1_000
MAX_TERMS = 160
_WORD = re.compile(r"[^\W_]+")
_HAN = "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_HAN_RUN = re.compile(f"[{_HAN}]+")
_PAIR_WEIGHT = 0.3
_NOUN_ENDING = re.compile(r"(?<=[A-Za-z]{4})ments?\Z", re.IGNORECASE)

_SAYING_NOTHING = """
a an and any are as at be been but by can could did do does for from had has have he her his how i if in into is
it its me my no not of on or our please shall she should so some than that the their them then there these they
this those to too us was we were what when where which who whom whose why will with would you your s t re ve ll d m
about tell
的 了 是 我 你 他 她 它 们 我们 你们 他们 在 和 与 及 有 没有 不 也 都 就 而 吗 呢 吧 啊 把 被 让 给 对 从 到 这 那 这个 那个
这些 那些 什么 怎么 怎样 如何 哪 哪个 哪些 谁 请 请问 一下 一个 个 里 上 下 中 为 为什么 要 会 能 可以 需要 用 关于 告诉
还是 或 或者 以及 并 并且 多少 时候 什么样
"""
_STOP_WORDS = frozenset(_SAYING_NOTHING.split())


@dataclass(frozen=True, slots=True)
class Term:
    """One thing looked for. `pattern` is a whole FTS5 expression made of quoted words only."""

    pattern: str
    weight: float


def storable(text: str) -> str:
    """Text without what SQLite cannot hold."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")


def plain(text: str) -> str:
    """With compatibility forms folded: full-width letters and the like."""
    return normal_form("NFKC", storable(text))


def words_of(text: str) -> list[str]:
    """The words of a text in order; of Chinese, also the shorter words within the longer ones."""
    found: list[str] = []
    for run in _WORD.findall(text):
        if _HAN_RUN.search(run):
            import rjieba  # noqa: PLC0415 - its dictionary takes a tenth of a second to load

            found.extend(_WORD.findall(" ".join(rjieba.cut_for_search(run))))
        else:
            # The stemmer that follows takes "deploy" and "deployment" for two words.
            found.append(_NOUN_ENDING.sub("", run))
    return found


def grams_of(text: str) -> list[str]:
    """Single characters and pairs of neighbours of the Chinese in a text."""
    found: list[str] = []
    for run in _HAN_RUN.findall(text):
        found.extend(run)
        found.extend(run[at : at + 2] for at in range(len(run) - 1))
    return found


def _looked_at(query: str) -> str:
    """A query, or both ends of a long one: the question may stand before what it is about, or behind."""
    if len(query) <= QUERY_CHARACTERS:
        return plain(query)
    half = QUERY_CHARACTERS // 2
    return plain(f"{query[:half]} {query[-half:]}")


def told_words(text: str) -> list[str]:
    """The words of a query that say something, each once; all of them, where none does."""
    words = list(dict.fromkeys(words_of(_looked_at(text).casefold())))
    return [word for word in words if word not in _STOP_WORDS] or words


def terms_of(query: str) -> list[Term]:
    """What a query looks for: its words without the empty ones, and pairs of Chinese characters.

    Whatever the query holds is read as words: quotes, operators and stars have no meaning.
    """
    terms = {word: Term(_anywhere(word), 1.0) for word in told_words(query)}
    text = _looked_at(query)
    dull = _STOP_WORDS.intersection(words_of(text))
    for pair in grams_of(text):
        # A pair with an empty word in it says nothing, and one that is a word is there already.
        if len(pair) == 2 and pair not in terms and not dull.intersection((*pair, pair)):
            terms[pair] = Term(f'grams : "{pair}"', _PAIR_WEIGHT)
    return list(terms.values())[:MAX_TERMS]


def _anywhere(word: str) -> str:
    if _HAN_RUN.fullmatch(word) and len(word) <= 2:
        return f'(words : "{word}" OR grams : "{word}")'
    return f'words : "{word}"'
