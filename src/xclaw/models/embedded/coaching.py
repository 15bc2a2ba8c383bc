"""How runs on a small model are set up: its brief, its tools, its examples, its schema."""

import re
from collections.abc import Mapping, Sequence

from xclaw.contracts.agents import Agent
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import ToolSpec
from xclaw.models.embedded.schema import action_schema
from xclaw.models.embedded.shots import (
    WORKER_TOOLS,
    delivery_note,
    orchestrator_brief,
    orchestrator_shots,
    progress_note,
    worker_brief,
    worker_shots,
)

_IN_A_LINE = re.compile(
    r"→|->|=>|\bthen\b|\bpipeline\b|\bstep by step\b|\bextract\b|\btranslat|\bsummari[sz]|"
    r"流水线|然后|接着|提取|翻译|摘要|总结",
    re.IGNORECASE,
)
_OPINIONS_ASKED = re.compile(
    r"\bdebate\b|\bpros and cons\b|\bcompare\b|\bversus\b|\bvs\b|\bshould (?:we|i)\b|\bwhich is better\b|"
    r"\bopinions?\b|\bperspectives\b|还是|对比|比较|多角度|利弊|优缺点|辩论|选型",
    re.IGNORECASE,
)


class SmallModelCoaching:
    """The runtime's `Coaching` for models whose profile says `few_shots`. Stateless."""

    max_turns: int = 8
    """A small model that has not ended by then goes round in circles, and each turn takes a minute."""

    def brief(self, agent: Agent, roster: Mapping[str, str]) -> str:
        """The whole system prompt: a long one costs a small model more than it gives."""
        if agent.orchestrator:
            return orchestrator_brief(roster)
        role, _, _ = agent.instructions.strip().partition("\n\n")
        return worker_brief(" ".join(role.split()) or agent.description)

    def tools(self, agent: Agent, names: Sequence[str], request: str) -> tuple[str, ...]:
        """Of the tools that the agent may use, the few that the request may need: a small model that
        has no other choice chooses right. A line or a debate is offered to who seems to ask for one."""
        if not agent.orchestrator:
            return tuple(name for name in names if name in WORKER_TOOLS)
        usable = {"delegate"}
        if _IN_A_LINE.search(request):
            usable.add("pipeline")
        if _OPINIONS_ASKED.search(request):
            usable.add("debate")
        return tuple(name for name in names if name in usable)

    def shots(self, agent: Agent) -> tuple[ChatMessage, ...]:
        return orchestrator_shots if agent.orchestrator else worker_shots

    def note(self, agent: Agent, done: Sequence[str], delivered: Sequence[str]) -> str:
        """What is done already; without it a small model does the same part for ever."""
        if agent.orchestrator:
            return progress_note(done) if done else ""
        return delivery_note(delivered) if delivered else ""

    def schema(
        self,
        specs: Sequence[ToolSpec],
        final: Mapping[str, object] | None,
        agents: Sequence[str],
        delivered: Sequence[str],
    ) -> dict[str, object]:
        """What one reply may be; see `xclaw.models.embedded.schema`."""
        return action_schema(specs, final, agents=agents, delivered=delivered)
