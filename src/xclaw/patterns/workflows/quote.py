"""What a workflow will cost at most: what a person is asked to allow, and what it is then held to."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from xclaw.contracts.errors import ToolFailed
from xclaw.patterns.arguments import as_mapping, list_of_names, shown, whole_number
from xclaw.patterns.workflows.settings import WorkflowSettings

EXAMPLE = '{"max_agents": 12, "max_usd": 0.5}'
MAX_NAMED = 20
_PLAIN = re.compile(r"[\w#-]{1,60}(?: [\w#-]{1,60})?")


@dataclass(frozen=True, slots=True)
class Quote:
    max_agents: int
    how: str
    """Where that number comes from."""
    agents: tuple[str, ...] | None
    """The only ones that may be started; None: any."""
    max_usd: float | None = None
    max_tokens: int | None = None
    """None: what the tree has left is all that bounds it."""

    def told(self, left: str, containment: str) -> str:
        """For the person who is asked; `left` is what the run's ledger says."""
        agents = "any agent" if self.agents is None else ", ".join(map(_name, self.agents[:MAX_NAMED]))
        agents = agents or "no agent"
        if self.agents is not None and len(self.agents) > MAX_NAMED:
            agents += f" and {len(self.agents) - MAX_NAMED} more"
        parts = [f"it starts at most {self.max_agents} agents ({self.how}): {agents}", self._cost(left)]
        return "; ".join([*parts, f"the script has {containment}"])

    def _cost(self, left: str) -> str:
        own = [f"${self.max_usd:g}"] if self.max_usd is not None else []
        own += [f"{self.max_tokens:,} tokens"] if self.max_tokens is not None else []
        if own:
            return f"at most {' and '.join(own)} together" + (f" (the run has left: {left})" if left else "")
        if left:
            return f"at most what the run has left: {left}"
        return "no bound of money or tokens is set"


def _name(written: str) -> str:
    """An agent's name as a script has it: what is no plain word or two stands in quotes, so that nothing in
    it passes for a part of the quote."""
    return written if _PLAIN.fullmatch(written) else shown(written)


def quote_of(
    argument: object, counted: int | None, named: tuple[str, ...] | None, settings: WorkflowSettings
) -> Quote:
    """From what was declared and what the script shows. Raises `ToolFailed` for a quote that is none."""
    declared = _declared(argument)
    most = settings.max_agents
    if declared.get("max_agents") not in (None, ""):
        agents, how = whole_number(declared, "max_agents", most, most), "as quoted"
    elif counted is not None:
        agents, how = counted, "counted in the script"
    else:
        agents, how = most, "the script does not show how many; this is the limit of the settings"
    if counted is not None and counted > most:
        raise ToolFailed(
            f"the script starts up to {counted} agents; workflow.max_agents allows {most}. Start fewer"
        )
    names = declared.get("agents")
    return Quote(
        agents,
        how,
        tuple(list_of_names(names, "quote.agents", '["coder"]')) if names not in (None, "", []) else named,
        _amount(declared, "max_usd"),
        whole_number(declared, "max_tokens", 0, 10**12) or None,
    )


def _declared(argument: object) -> Mapping[str, object]:
    if argument in (None, "", {}):
        return {}
    declared = as_mapping(argument)
    if declared is None:
        raise ToolFailed(f"`quote` must be an object such as {EXAMPLE}, not {shown(argument)}")
    unknown = [name for name in declared if name not in ("max_agents", "agents", "max_usd", "max_tokens")]
    if unknown:
        raise ToolFailed(
            f"`quote` has no {shown(unknown[0])}; it has max_agents, agents, max_usd, max_tokens"
        )
    return declared


def _amount(declared: Mapping[str, object], name: str) -> float | None:
    value = declared.get(name)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ToolFailed(f"`quote.{name}` must be an amount above 0, not {shown(value)}")
    return float(value)
