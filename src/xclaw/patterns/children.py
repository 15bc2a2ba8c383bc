"""Starting children in the way that all patterns share."""

from collections.abc import Iterable

from xclaw.contracts.errors import SpawnRefused, ToolFailed
from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Spawn
from xclaw.contracts.tasks import Task
from xclaw.patterns.arguments import shown

NAMES_SHOWN = 50


def known_agent(spawn: Spawn, name: str, place: str = "agent") -> str:
    """The agent that a model meant. Raises `ToolFailed` with the known ones."""
    resolved = spawn.resolve(name)
    if resolved is None:
        raise ToolFailed(f"{place}: {unknown_agent(spawn, name)}")
    return resolved


def unknown_agent(spawn: Spawn, name: str) -> str:
    known = list(spawn.agents())
    listed = ", ".join(known[:NAMES_SHOWN]) + (", ..." if len(known) > NAMES_SHOWN else "")
    return f"unknown agent {shown(name)}. Available: {listed or 'none'}"


async def attempt(spawn: Spawn, task: Task) -> Result:
    """Run a child among siblings: whatever goes wrong with it is its result, and never theirs.

    Cancelling ends the child.
    """
    try:
        return await spawn.run(task)
    except SpawnRefused as error:
        return Result("error", reason=str(error))
    except Exception as error:  # noqa: BLE001 - the failure boundary between siblings
        return Result("error", reason=f"{type(error).__name__}: {error}")


def shared_model(spawn: Spawn, agents: Iterable[str]) -> str | None:
    """The one model that all these agents run on, or None when they differ or are fewer than two."""
    models = [spawn.model_of(agent) for agent in agents]
    return models[0] if len(models) > 1 and len(set(models)) == 1 else None
