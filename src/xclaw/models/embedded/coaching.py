"""How runs on a small model are set up: its brief, its tools, its examples, its schema."""

import re
from collections.abc import Mapping, Sequence

from xclaw.contracts.agents import Agent
from xclaw.contracts.coaching import Standing
from xclaw.contracts.coordination import PHASE_TOOLS, is_coordinator
from xclaw.contracts.messages import ChatMessage
from xclaw.contracts.models import ToolSpec
from xclaw.models.embedded.phase_schema import command_schema, phase_schema
from xclaw.models.embedded.phase_shots import coordinator_brief, coordinator_shots, verifier_shots
from xclaw.models.embedded.schema import LONGEST_TEXT, action_schema
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

_PARTS = (
    (
        "coder",
        re.compile(
            r"\b(?:function|module|class|script|helper|program|library|parser|converter|schema|component|endpoint|"
            r"code)\b|\.(?:py|js|ts|go|rs|sh|sql)\b|函数|模块|类|脚本|代码|程序|组件|接口",
            re.IGNORECASE,
        ),
    ),
    ("reviewer", re.compile(r"\breview|\baudit\b|审查|评审|审核", re.IGNORECASE)),
    (
        "writer",
        re.compile(
            r"\breadme\b|\bdocument|\bdocs?\b|\bguide\b|\bmanual\b|\btutorial\b|文档|说明|注释|指南|手册",
            re.IGNORECASE,
        ),
    ),
)
"""The parts that a request for code may have, in the order in which they need one another."""


BRIEF_REPORT = 600
_BRIEF_REPORTERS = frozenset({"explorer", "verifier"})
"""Who has nothing but a summary to give; with more room it says the same thing over and over, for minutes."""


class SmallModelCoaching:
    """The runtime's `Coaching` for models whose profile says `few_shots`. Stateless."""

    max_turns: int = 8
    """A small model that has not ended by then goes round in circles, and each turn takes a minute."""

    def brief(self, agent: Agent, roster: Mapping[str, str]) -> str:
        """The whole system prompt: a long one costs a small model more than it gives."""
        if is_coordinator(agent.tools or ()):
            return coordinator_brief(roster)
        if agent.orchestrator:
            return orchestrator_brief(roster)
        role, _, _ = agent.instructions.strip().partition("\n\n")
        return worker_brief(" ".join(role.split()) or agent.description)

    def tools(self, agent: Agent, names: Sequence[str], request: str) -> tuple[str, ...]:
        """Of the tools that the agent may use, the few that the request may need: a small model that
        has no other choice chooses right. A line or a debate is offered to who seems to ask for one."""
        if is_coordinator(names):
            return tuple(name for name in names if name in PHASE_TOOLS)
        if not agent.orchestrator:
            return tuple(name for name in names if name in _offered(agent, request))
        usable = {"delegate"}
        if _IN_A_LINE.search(request):
            usable.add("pipeline")
        if _OPINIONS_ASKED.search(request):
            usable.add("debate")
        return tuple(name for name in names if name in usable)

    def shots(self, agent: Agent) -> tuple[ChatMessage, ...]:
        if is_coordinator(agent.tools or ()):
            return coordinator_shots
        if "shell" in (agent.tools or ()):
            return verifier_shots
        return orchestrator_shots if agent.orchestrator else worker_shots

    def note(self, agent: Agent, standing: Standing) -> str:
        """What is done already; without it a small model does the same part for ever."""
        if standing.next_step and is_coordinator(agent.tools or ()):
            return f"(Next: {standing.next_step}.)"
        if not agent.orchestrator:
            names = [path.rsplit("/", 1)[-1] for path in standing.delivered]
            return delivery_note(names) if names else ""
        return progress_note(standing.done, missing_parts(standing)) if standing.done else ""

    def schema(
        self,
        agent: Agent,
        specs: Sequence[ToolSpec],
        final: Mapping[str, object] | None,
        roster: Sequence[str],
        standing: Standing,
    ) -> dict[str, object]:
        """What one reply may be. While a part that was asked for is missing, an orchestrator is offered
        nothing but to hand it out: who does it is a rule's choice, what exactly is the model's."""
        if is_coordinator(agent.tools or ()):
            return phase_schema(standing, [name for name in roster if name != "verifier"])
        if standing.commands:
            return command_schema(standing.commands[0])
        most = BRIEF_REPORT if agent.name in _BRIEF_REPORTERS else LONGEST_TEXT
        if standing.is_over:
            return action_schema((), final, delivered=standing.delivered, summary=most)
        missing = missing_parts(standing) if agent.orchestrator else ()
        handing_out = [spec for spec in specs if spec.name == "delegate"]
        if missing and handing_out and set(missing) <= set(roster):
            return action_schema(handing_out, None, agents=missing[:1], ends=False)
        return action_schema(specs, final, agents=roster, delivered=standing.delivered, summary=most)


def _offered(agent: Agent, request: str) -> tuple[str, ...]:
    """An explorer reports in a few lines: offered to deliver a file, it would write one for minutes, and it
    would read files that are not there."""
    if agent.name == "explorer":
        return ("view_file",) if "/" in request else ()
    return (*WORKER_TOOLS, "shell") if "shell" in (agent.tools or ()) else WORKER_TOOLS


def missing_parts(standing: Standing) -> tuple[str, ...]:
    """Agents for the parts of a request that are not handed out yet; none for a request of one part."""
    asked = [agent for agent, pattern in _PARTS if pattern.search(standing.request)]
    return tuple(agent for agent in asked if agent not in standing.done) if len(asked) > 1 else ()
