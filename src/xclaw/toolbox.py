"""The tools there are: built in, of the patterns, and those that were given in Python. Wired alike in xclaw's
own process and in a worker's."""

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.sandbox import Sandboxes
from xclaw.contracts.tools import Tool
from xclaw.patterns.coordinator.reports import KeepNote, nothing_kept
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.coordinator.toolset import coordinator_tools
from xclaw.patterns.toolset import pattern_tools
from xclaw.sandbox.building import backends
from xclaw.sandbox.choosing import choose
from xclaw.sandbox.environment import PATH
from xclaw.sandbox.host import HostSandboxes
from xclaw.sandbox.pool import SandboxPool
from xclaw.sandbox.settings import SandboxSettings
from xclaw.spawn.leftovers import MARK
from xclaw.tools.deliver import deliver
from xclaw.tools.edit import edit_file
from xclaw.tools.files import FILE_TOOLS
from xclaw.tools.project import commit, merge_branches
from xclaw.tools.registry import ToolRegistry
from xclaw.tools.search import search_tool
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
    sandbox: SandboxSettings | None = None,
) -> ToolRegistry:
    """`find` looks a delivered artifact up; `roster` is every agent that work can be handed to; `sandbox` is
    None in host mode. Raises `UsageError` for a tool of `own` whose name is taken."""
    patterns = pattern_tools(find, roster)
    shell = shell_tool(_shell(sandbox))
    search = search_tool(shutil.which("rg", path=PATH) or "")
    registry = ToolRegistry(
        [*patterns.values(), *FILE_TOOLS, search, edit_file, deliver, shell, commit, merge_branches]
    )
    for tool in own:
        registry.add(tool)
    keep = phases.keep if "scratchpad_read" in registry.names() else nothing_kept
    for tool in coordinator_tools(find, phases.settings, keep).values():
        registry.add(tool)
    return registry


def build_sandboxes(settings: SandboxSettings | None, mark: str) -> Sandboxes:
    """What hands out sandboxes, made by what works here and was asked for; without settings, those of host
    mode. `mark` tells whose commands they are where nothing keeps them in, for whoever has to end what a
    killed process left (`spawn.leftovers`)."""
    marks = ((MARK, mark),) if mark else ()
    if settings is None:
        return HostSandboxes(marks)
    there = backends(settings, marks)
    return SandboxPool(lambda: choose(settings.backend, there), settings)


def _shell(sandbox: SandboxSettings | None) -> ShellSettings:
    """On this machine it acts, whoever calls that a sandbox; kept in, it changes what is the run's own."""
    if sandbox is None:
        return ShellSettings()
    return ShellSettings(
        timeout_s=sandbox.timeout_s,
        max_timeout_s=sandbox.max_timeout_s,
        policy=sandbox.policy(),
        effect="acts" if sandbox.backend == "host" else "writes",
    )
