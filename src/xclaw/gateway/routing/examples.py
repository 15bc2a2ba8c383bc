"""Example requests of each agent, for the routers that learn from them."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

import msgspec

from xclaw.gateway.routing.rules import RuleBook


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example: a request, what it asks for, who does it."""

    text: str
    task: str
    agent: str


@dataclass(frozen=True, slots=True)
class Examples:
    """What is packaged."""

    examples: Mapping[str, tuple[str, ...]]
    shots: tuple[Shot, ...]


@lru_cache(maxsize=1)
def packaged_examples() -> Examples:
    text = (resources.files("xclaw.gateway.routing") / "router_examples.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Examples)


def examples_of(book: RuleBook) -> dict[str, tuple[str, ...]]:
    """By agent: the packaged example requests, and those of the user's own rules."""
    examples = dict(packaged_examples().examples)
    for rule in book.rules:
        if rule.examples:
            examples[rule.agent] = (*examples.get(rule.agent, ()), *rule.examples)
    return examples
