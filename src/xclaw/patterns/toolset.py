"""All pattern tools, by name."""

from collections.abc import Mapping

from xclaw.contracts.tools import Tool
from xclaw.patterns.debate import DebateTool
from xclaw.patterns.delegate import DelegateTool
from xclaw.patterns.inputs import FindArtifact
from xclaw.patterns.pipeline import PipelineTool
from xclaw.patterns.spawning import ListAgentsTool, SendMessageTool, SpawnTool, StopTool, WaitTool
from xclaw.patterns.team import CreateTeamTool
from xclaw.patterns.team_tools import TeamTasksTool, WaitForMailTool


def pattern_tools(find_artifact: FindArtifact, roster: Mapping[str, str] | None = None) -> dict[str, Tool]:
    """What an orchestrator hands work out with, and the members of its teams work together with. `roster`
    (name to description) is told to its model."""
    tools: tuple[Tool, ...] = (
        DelegateTool(find_artifact, roster),
        DebateTool(find_artifact),
        PipelineTool(find_artifact),
        CreateTeamTool(find_artifact),
        SpawnTool(find_artifact, ("local", "forked")),
        WaitTool(),
        SendMessageTool(),
        StopTool(),
        ListAgentsTool(),
        WaitForMailTool(),
        TeamTasksTool(),
    )
    return {tool.spec.name: tool for tool in tools}
