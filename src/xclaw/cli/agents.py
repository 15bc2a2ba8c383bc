"""`xclaw agents`: who there is, and what one of them is told."""

import difflib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, complain
from xclaw.cli.opening import settings_of_workspace
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.contracts.agents import Agent


def show_agents(name: str | None, workspace: str | None, *, as_json: bool) -> int:
    """List the agents, or show one."""
    from xclaw.agents.loader import load_agents

    settings = settings_of_workspace(workspace)
    registry, warnings = load_agents(settings.agents)
    for warning in (*settings.warnings, *warnings):
        complain(f"warning: {warning}")
    if name is None:
        print_list(list(registry), as_json=as_json)
        return DONE
    agent = registry.get(name)
    if agent is None:
        close = difflib.get_close_matches(name, registry.names, n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise UsageError(f"there is no agent {name!r}.{hint} Known: {', '.join(registry.names)}.")
    _show(agent, as_json=as_json)
    return DONE


def print_list(agents: Sequence["Agent"], *, as_json: bool = False) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"agents": [_form(agent) for agent in agents]})
        return
    width = max((len(one_line(agent.name, 30)) for agent in agents), default=0)
    for agent in agents:
        source = "" if agent.source == "built-in" else f"  ({printable(agent.source)})"
        print(f"{one_line(agent.name, 30):{width}}  {one_line(agent.description, 90)}{source}")


def _show(agent: "Agent", *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(_form(agent))
        return
    limits = agent.limits
    rows = {
        "name": agent.name,
        "description": agent.description,
        "source": agent.source,
        "models": ", ".join(agent.models) or "the configured chain",
        "tools": "the default set" if agent.tools is None else ", ".join(agent.tools) or "none",
        "turns": "the default" if limits.max_turns is None else str(limits.max_turns),
        "time": "the default" if limits.timeout_s is None else f"{limits.timeout_s:g} s",
        "hands work out": "yes" if agent.orchestrator else "no",
        "permissions": "; ".join([agent.permission_mode, *_rules(agent)]),
    }
    for label, value in rows.items():
        print(f"{label:15} {one_line(value, 300)}")
    print(f"\n{printable(agent.instructions).strip()}")


def _rules(agent: "Agent") -> list[str]:
    rules = agent.rules
    lists = (("allow", rules.allow), ("ask", rules.ask), ("deny", rules.deny))
    return [f"{kind} {', '.join(written)}" for kind, written in lists if written]


def _form(agent: "Agent") -> dict[str, object]:
    return {
        "name": agent.name,
        "description": agent.description,
        "source": agent.source,
        "models": list(agent.models),
        "tools": None if agent.tools is None else list(agent.tools),
        "max_turns": agent.limits.max_turns,
        "timeout_s": agent.limits.timeout_s,
        "isolation": agent.isolation,
        "permission_mode": agent.permission_mode,
        "allow": list(agent.rules.allow),
        "ask": list(agent.rules.ask),
        "deny": list(agent.rules.deny),
        "memory": agent.memory,
        "orchestrator": agent.orchestrator,
        "instructions": agent.instructions,
    }
