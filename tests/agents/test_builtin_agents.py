"""The agents that ship with xclaw (SPEC C2)."""

from xclaw.agents.loader import load_agents
from xclaw.agents.settings import AgentSettings

SPECIALISTS = {
    "coder",
    "reviewer",
    "writer",
    "skeptic",
    "optimizer",
    "extractor",
    "analyzer",
    "reporter",
    "optimist",
    "security",
    "explorer",
    "general",
    "verifier",
}


def test_every_agent_of_the_specification_is_there() -> None:
    registry, warnings = load_agents(AgentSettings())
    assert warnings == ()
    assert set(registry.names) == {"orchestrator", "coordinator", *SPECIALISTS}
    assert set(registry.roster()) == SPECIALISTS


def test_orchestrator_and_coordinator_hand_work_out_and_the_orchestrator_has_thirty_turns() -> None:
    """SPEC C3."""
    registry, _ = load_agents(AgentSettings())
    orchestrator = registry.get("orchestrator")
    assert orchestrator is not None
    assert orchestrator.orchestrator
    assert orchestrator.limits.max_turns is None, "the runtime's `orchestrator_turns` holds"
    assert [agent.name for agent in registry if agent.orchestrator] == ["coordinator", "orchestrator"]


def test_every_prompt_tells_its_agent_which_language_to_answer_in() -> None:
    for agent in load_agents(AgentSettings())[0]:
        assert "language" in agent.instructions, agent.name
        assert agent.description.endswith("."), agent.name


def test_the_orchestrator_is_told_the_rules_of_handing_out() -> None:
    """SPEC E6, E7; seed 000, section 6."""
    orchestrator = load_agents(AgentSettings())[0].get("orchestrator")
    assert orchestrator is not None
    for rule in (
        "delegate(",
        "debate(",
        "pipeline(",
        "spawn(",
        "stand alone",
        "pointer",
        "scratchpad",
        "fork",
    ):
        assert rule in orchestrator.instructions.casefold(), rule
