"""Tool names in agent files: those of other tools' files are mapped to ours."""

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from xclaw.agents.settings import AgentSettings

COUNTERPARTS: Mapping[str, str] = {
    "read": "view_file",
    "write": "write_file",
    "edit": "edit_file",
    "grep": "search",
    "ls": "list_dir",
    "bash": "shell",
    "webfetch": "web_fetch",
    "task": "delegate",
    "agent": "delegate",
}
"""Claude Code's names, folded, to ours."""

_WITHOUT_COUNTERPART = frozenset(
    {
        "multiedit",
        "glob",
        "notebookedit",
        "notebookread",
        "websearch",
        "todowrite",
        "todoread",
        "bashoutput",
        "killshell",
        "killbash",
        "skill",
        "slashcommand",
        "exitplanmode",
        "askuserquestion",
        "toolsearch",
        "lsp",
    }
)


@dataclass(frozen=True, slots=True)
class ToolNames:
    names: tuple[str, ...] | None
    """None: the default set of the agent's kind."""
    warnings: tuple[tuple[str, str], ...] = ()
    """The key that a warning belongs to, and its text."""


def read_tools(
    allowed: tuple[str, ...] | None, denied: tuple[str, ...] | None, settings: AgentSettings
) -> ToolNames:
    """What an agent may use: `allowed`, or the default set, without `denied`.

    A name that is not known is left out with a warning: an agent gets less than its file says, never more.
    """
    warnings: list[tuple[str, str]] = []
    everything = allowed is None or "*" in allowed
    kept = (
        settings.default_tools
        if allowed is None or everything
        else _mapped("tools", allowed, settings, warnings)
    )
    if denied is not None and "*" in denied:
        refused = settings.known_tools
    else:
        refused = _mapped("disallowedTools", denied or (), settings, warnings)
    if everything and not refused:
        return ToolNames(None, tuple(warnings))
    names = tuple(name for name in kept if name not in refused)
    if allowed and not names:
        warnings.append(("tools", "none of its tools is known here; the agent has no tools"))
    return ToolNames(names, tuple(warnings))


def _mapped(
    key: str, written: tuple[str, ...], settings: AgentSettings, warnings: list[tuple[str, str]]
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for item in written:
        name = item.split("(", 1)[0].strip()
        if name != item.strip():
            warnings.append((key, f"the rule in {item[:60]!r} has no effect here; read as {name!r}"))
        tool = _known(name, settings)
        if tool is None:
            warnings.append((key, _unknown_tool(name, settings)))
        else:
            found[tool] = None
    return tuple(found)


def _known(name: str, settings: AgentSettings) -> str | None:
    if name in settings.known_tools:
        return name
    folded = name.casefold().replace("-", "_")
    by_key = {tool.casefold(): tool for tool in settings.known_tools}
    counterpart = COUNTERPARTS.get(folded, "")
    return by_key.get(folded) or by_key.get(counterpart)


def _unknown_tool(name: str, settings: AgentSettings) -> str:
    shown = name[:60]
    if name.casefold() in _WITHOUT_COUNTERPART:
        return f"the tool {shown!r} has no counterpart here and is left out"
    close = get_close_matches(name.casefold(), settings.known_tools, n=1, cutoff=0.6)
    hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(settings.known_tools)}"
    return f"the tool {shown!r} is not known and is left out; {hint}"
