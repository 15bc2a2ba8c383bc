"""The Coaching contract: how a run on a small model is helped."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from xclaw.contracts.agents import Agent
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import ToolSpec


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a coached run is."""

    request: str
    """What it was asked to do."""
    done: tuple[str, ...] = ()
    """Agents whose results are in, in order."""
    delivered: tuple[str, ...] = ()
    """Paths of what it delivered itself."""
    commands: tuple[str, ...] = ()
    """Checks that its task asks for and that have not been run, in order."""
    offered: tuple[str, ...] = ()
    """Tools of the phase that a coordinator is in; none when its work is over."""
    next_step: str = ""
    """What a coordinator is to do next."""
    is_over: bool = False
    """It repeats itself or has no turn left: nothing but the end is to be offered."""


class Coaching(Protocol):
    """What a model that needs worked examples (`ModelProfile.few_shots`) is given instead of the
    instructions, tools and schemas of stronger ones."""

    max_turns: int
    """Of a run that sets no limit of its own."""

    def brief(self, agent: Agent, roster: Mapping[str, str]) -> str: ...

    def tools(self, agent: Agent, names: Sequence[str], request: str) -> tuple[str, ...]: ...

    def shots(self, agent: Agent) -> tuple[ChatMessage, ...]: ...

    def note(self, agent: Agent, standing: Standing) -> str:
        """What stands in the last tool output instead of the task state; may be empty."""
        ...

    def schema(
        self,
        agent: Agent,
        specs: Sequence[ToolSpec],
        final: Mapping[str, object] | None,
        roster: Sequence[str],
        standing: Standing,
    ) -> dict[str, object]:
        """What the next reply may be; `final` is the result form, None for an answer in text."""
        ...
