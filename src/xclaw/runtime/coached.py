"""Runs on small models: what they are shown and offered each turn."""

from xclaw.contracts.agents import Agent
from xclaw.contracts.coaching import Standing
from xclaw.contracts.models import ToolSpec
from xclaw.loop.parts import Schema
from xclaw.loop.state import RunState
from xclaw.runtime.services import Services


def coached_note(services: Services, agent: Agent, state: RunState) -> str:
    return services.coaching.note(agent, _standing(state, is_over=False))


def coached_schema(services: Services, agent: Agent, state: RunState, specs: tuple[ToolSpec, ...]) -> Schema:
    """The schema of the next reply, from the state as it then is."""
    roster = list(services.agents.roster())

    def schema(final: dict[str, object] | None, is_over: bool) -> dict[str, object]:
        return services.coaching.schema(agent, specs, final, roster, _standing(state, is_over=is_over))

    return schema


def _standing(state: RunState, *, is_over: bool) -> Standing:
    done = [state.children[run_id].task.agent for run_id in state.child_results if run_id in state.children]
    again = bool(state.delivered) and state.delivered[-1].version > 1
    return Standing(
        state.request,
        tuple(done),
        tuple(dict.fromkeys(pointer.path for pointer in state.delivered)),
        tuple(check.command for check in state.check_runs.left()),
        state.coordination.offered,
        state.coordination.next_step,
        is_over or again or state.repeated,
    )
