"""Agents as models: `xclaw` goes where the router sends it, `xclaw/NAME` to that agent.

Ids are ASCII without spaces, whatever the agents are called: other letters are percent-encoded.
"""

from urllib.parse import quote, unquote

from xclaw.contracts.agents import Agent
from xclaw.gateway.protocols.openai.refused import Refused
from xclaw.runtime.services import Agents

ROUTED = "xclaw"
ORCHESTRATOR = "orchestrator"
_PREFIX = f"{ROUTED}/"


def model_id(agent: str) -> str:
    """The id of an agent; `ROUTED` for ""."""
    return _PREFIX + quote(agent, safe="") if agent else ROUTED


def agent_of(model: str | None, agents: Agents) -> str:
    """The agent that an id means, "" for the routed one. Raises `Refused`."""
    if not model:
        raise Refused("model is missing; GET /v1/models lists them", param="model")
    if model == ROUTED:
        return ""
    if model.startswith(_PREFIX):
        name = model.removeprefix(_PREFIX)
        found = agents.resolve(unquote(name)) or agents.resolve(name)
        if found is not None:
            return found
    raise Refused(
        f"there is no model {model[:120]!r}; GET /v1/models lists them",
        code="model_not_found",
        param="model",
        status=404,
    )


def model_list(agents: Agents) -> dict[str, object]:
    names = ("", ORCHESTRATOR, *(name for name in agents.roster() if name != ORCHESTRATOR))
    return {"object": "list", "data": [model_object(name, agents) for name in names]}


def model_object(name: str, agents: Agents) -> dict[str, object]:
    """A model that means the agent `name`. `created` is the same for all: agents have no date."""
    agent: Agent | None = agents.get(name) if name else None
    about = {"agent": name, "description": agent.description if agent else "The agent that the router picks."}
    return {"id": model_id(name), "object": "model", "created": 0, "owned_by": ROUTED, "xclaw": about}
