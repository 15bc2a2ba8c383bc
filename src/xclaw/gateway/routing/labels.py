"""Which agent a router model's answer names: exactly one of those that there are, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xclaw.contracts.unicode_forms import normal_form
from xclaw.gateway.routing.lexicon import Terms, tokens_of
from xclaw.loop.json_blocks import Block, BlockReader

READ_CHARACTERS = 8_000
"""Of an answer: what is longer is no label."""


@dataclass(frozen=True, slots=True)
class Named:
    """The label of an answer; empty with a `fault` that says why there is none."""

    label: str
    fault: str = ""


def named_label(answer: str, labels: Sequence[str]) -> Named:
    """The label in `{"agent": …}`, else the only one that stands in the text as a word of its own."""
    text = answer[:READ_CHARACTERS]
    if not text.strip():
        return Named("", "the answer is empty")
    start = text.find("{")
    block = BlockReader(text).read(start) if start >= 0 else None
    if isinstance(block, Block) and isinstance(block.value, dict):
        return _in_object(cast("dict[str, object]", block.value), labels)
    return _in_prose(text, labels)


def _in_object(value: dict[str, object], labels: Sequence[str]) -> Named:
    written = value.get("agent")
    if not isinstance(written, str):
        return Named("", "the answer has no `agent`")
    by_folded = {_folded(label): label for label in labels}
    label = by_folded.get(_folded(written))
    return Named(label) if label else Named("", f"there is no agent {written[:40]!r}")


def _in_prose(text: str, labels: Sequence[str]) -> Named:
    by_tokens = {tokens_of(_folded(label)): label for label in labels}
    terms = Terms((tokens, "label") for tokens in by_tokens if tokens)
    spelled = {" ".join(tokens): label for tokens, label in by_tokens.items()}
    joined = {key.replace(" ", ""): label for key, label in spelled.items()}
    found = {
        joined[unit.text.replace(" ", "")] for unit in terms.units(tokens_of(_folded(text))) if unit.classes
    }
    if len(found) == 1:
        return Named(found.pop())
    return Named("", f"the answer names {len(found)} agents" if found else "the answer names no agent")


def _folded(text: str) -> str:
    return normal_form("NFKC", text).casefold().strip()
