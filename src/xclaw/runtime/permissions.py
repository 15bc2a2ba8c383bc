"""Whether a call may run: what the chain from the user's settings down to the run says of it (SPEC J1)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError
from xclaw.contracts.permissions import (
    Effect,
    Kind,
    Level,
    PermissionMode,
    Permissions,
    Rules,
    parse_rule,
)
from xclaw.runtime.rules import Call, has_patterns, is_clear, matching, tool_named

SETTINGS = "settings"
STRICTEST_FIRST: tuple[PermissionMode, ...] = ("plan", "deny-all", "default", "accept-edits", "bubble")
_ASKED: Mapping[PermissionMode, frozenset[Effect]] = {
    "default": frozenset({"edits", "acts"}),
    "accept-edits": frozenset({"acts"}),
    "deny-all": frozenset({"edits", "acts"}),
    "plan": frozenset(),
    "bubble": frozenset(),
}


@dataclass(frozen=True, slots=True)
class PermissionSettings:
    """The user's own rules, for every agent."""

    mode: PermissionMode = "default"
    """Of every run; an agent's own mode can only narrow it. "bubble" is "default" here."""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    unattended: Literal["park", "deny"] | None = None
    """What becomes of a question that nobody is there to answer. None: `xclaw run` without a terminal
    denies, everything else parks."""
    approval_timeout_s: float | None = None
    """How long a question waits before it is denied; None: for ever."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What becomes of a call, and why."""

    kind: Kind
    why: str
    rule: str = ""
    """The rule that decided; empty when a mode did."""


_ALLOWED = Verdict("allow", "")


def settings_level(settings: PermissionSettings, *, allow_shell: bool) -> Level:
    """The first of every chain. `allow_shell` is short for a rule that allows the shell. Raises
    `UsageError` for what is no rule."""
    allow = (*settings.allow, "shell") if allow_shell else settings.allow
    mode: PermissionMode = "default" if settings.mode == "bubble" else settings.mode
    return Level(SETTINGS, mode, _checked(Rules(allow, settings.ask, settings.deny), SETTINGS))


def narrowed(above: Permissions, agent: Agent) -> Permissions:
    """What `agent` may do below `above`. A level that says nothing is left out. Raises `UsageError` for
    what is no rule."""
    if agent.permission_mode == "bubble" and agent.rules == Rules():
        return above
    rules = _checked(agent.rules, agent.name)
    return Permissions((*above.levels, Level(agent.name, agent.permission_mode, rules)))


def _checked(rules: Rules, whose: str) -> Rules:
    """The rules, if they are. Those of files were checked where they stand, those of Python were not."""
    for rule in (*rules.allow, *rules.ask, *rules.deny):
        try:
            parse_rule(rule)
        except ValueError as failure:
            raise UsageError(f"rules of {whose}: {failure}") from None
    return rules


def effective_mode(permissions: Permissions) -> PermissionMode:
    """The strictest mode of the chain."""
    modes = [level.mode for level in permissions.levels]
    for mode in STRICTEST_FIRST:
        if mode in modes:
            return mode
    return "default"


def names_tool(rules: Rules, tool: str) -> bool:
    """Whether a rule of the user's lets this very `tool` be used, with or without asking."""
    return any(tool_named(parse_rule(rule).tool) == tool for rule in (*rules.allow, *rules.ask))


def forbids(rules: Rules, tool: str) -> bool:
    """Whether a rule of the user's denies `tool` whatever its arguments are."""
    return any(rule.pattern is None and tool_named(rule.tool) == tool for rule in map(parse_rule, rules.deny))


def decide(permissions: Permissions, call: Call, effect: Effect, grants: Collection[str] = ()) -> Verdict:
    """The strictest of what the levels say. `grants` are rules that the user gave this very agent: they
    answer what would be asked, unless a rule asks for it, and nothing else."""
    verdict = _strictest(permissions, call, effect, ())
    if verdict.kind == "ask" and grants:
        return _strictest(permissions, call, effect, grants)
    return verdict


def _strictest(permissions: Permissions, call: Call, effect: Effect, grants: Collection[str]) -> Verdict:
    if not permissions.levels:
        return Verdict("deny", "nothing is known of what this run may do")
    everywhere = (*permissions.levels[0].rules.allow, *grants)
    verdict = _ALLOWED
    for at, level in enumerate(permissions.levels):
        allow = (*level.rules.allow, *everywhere) if at else everywhere
        said = _said(level, allow, call, effect)
        if said.kind == "deny":
            return said
        if said.kind == "ask" and (verdict.kind == "allow" or (said.rule and not verdict.rule)):
            verdict = said
    return verdict


def _said(level: Level, allow: tuple[str, ...], call: Call, effect: Effect) -> Verdict:
    """What one level says; `allow` are the rules that allow something at it."""
    rules, whose = level.rules, f"of {level.who}"
    denied = matching("deny", rules.deny, call) if rules.deny else ""
    if denied:
        return Verdict("deny", f"the rule `deny {denied}` {whose} forbids it", denied)
    if level.mode == "plan" and effect != "reads":
        return Verdict(
            "deny", f"the mode `plan` {whose} lets nothing be changed: read, and report what you would do"
        )
    verdict = _by_rule(rules, allow, call, whose) or _by_mode(level, effect, whose)
    if verdict.kind == "ask" and level.mode == "deny-all":
        return Verdict("deny", f"{verdict.why}, and the mode `deny-all` {whose} denies what would be asked")
    return verdict


def _by_rule(rules: Rules, allow: tuple[str, ...], call: Call, whose: str) -> Verdict | None:
    asked = matching("ask", rules.ask, call) if rules.ask else ""
    if asked:
        return Verdict("ask", f"the rule `ask {asked}` {whose} matches", asked)
    if has_patterns((*rules.deny, *rules.ask), call.tool) and not is_clear(call):
        return Verdict("ask", f"it cannot be told whether a rule {whose} matches")
    if allow and matching("allow", allow, call):
        return _ALLOWED
    return None


def _by_mode(level: Level, effect: Effect, whose: str) -> Verdict:
    if effect in _ASKED[level.mode]:
        return Verdict("ask", f"no rule allows it, and the mode `{level.mode}` {whose} asks")
    return _ALLOWED
