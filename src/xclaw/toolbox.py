"""The tools there are: built in, of the patterns, and those that were given in Python. Wired alike in xclaw's
own process and in a worker's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.tools import Tool
from xclaw.patterns.coordinator.reports import KeepNote, nothing_kept
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.toolset import coordinator_tools
from xclaw.patterns.toolset import pattern_tools
from xclaw.spawn.leftovers import MARK
from xclaw.tools.deliver import deliver
from xclaw.tools.files import list_dir, view_file, write_file
from xclaw.tools.registry import ToolRegistry
from xclaw.tools.shell import ShellSettings, shell_tool


@dataclass(frozen=True, slots=True)
class Phases:
    """What a coordinator's tools are told."""

    settings: CoordinatorSettings
    keep: KeepNote = nothing_kept
    """Used where agents can read what it keeps."""


NO_SETTINGS = Phases(CoordinatorSettings())


def build_toolbox(
    find: Callable[[str], Pointer | None],
    roster: Mapping[str, str],
    own: Sequence[Tool] = (),
    phases: Phases = NO_SETTINGS,
    mark: str = "",
) -> ToolRegistry:
    """`find` looks a delivered artifact up; `roster` is every agent that work can be handed to; `mark` tells
    whose commands they are, for whoever has to end what a killed process left (`spawn.leftovers`). Raises
    `UsageError` for a tool of `own` whose name is taken."""
    patterns = pattern_tools(find, roster)
    shell = shell_tool(ShellSettings(environment=((MARK, mark),) if mark else ()))
    registry = ToolRegistry([*patterns.values(), view_file, list_dir, write_file, deliver, shell])
    for tool in own:
        registry.add(tool)
    keep = phases.keep if "scratchpad_read" in registry.names() else nothing_kept
    for tool in coordinator_tools(find, phases.settings, keep).values():
        registry.add(tool)
    return registry
