"""The four tools of a coordinator, by name."""

from xclaw.contracts.tools import Tool
from xclaw.patterns.coordinator.implement import ImplementTool
from xclaw.patterns.coordinator.reports import KeepNote, nothing_kept
from xclaw.patterns.coordinator.research import ResearchTool
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.verify import VerifyTool
from xclaw.patterns.coordinator.write_plan import WritePlanTool
from xclaw.patterns.inputs import FindArtifact

DEFAULTS = CoordinatorSettings()


def coordinator_tools(
    find_artifact: FindArtifact, settings: CoordinatorSettings = DEFAULTS, keep: KeepNote = nothing_kept
) -> dict[str, Tool]:
    """`keep` puts reports on the scratchpad, where there is one."""
    tools: tuple[Tool, ...] = (
        ResearchTool(find_artifact, settings, keep),
        WritePlanTool(find_artifact, settings, keep),
        ImplementTool(find_artifact, settings, keep),
        VerifyTool(settings, keep),
    )
    return {tool.spec.name: tool for tool in tools}
