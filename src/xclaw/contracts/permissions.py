"""What a run may do (SPEC J1): rules, modes, and the chain of both from the user's settings down to it."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

Effect = Literal["reads", "writes", "edits", "acts"]
"""What a tool does to the world: looks, or hands work out, whose calls are decided on their own ("reads");
changes what is the run's own ("writes"), or files elsewhere ("edits"); runs commands or reaches other
machines ("acts")."""

PermissionMode = Literal["default", "accept-edits", "plan", "bubble", "deny-all"]
"""What counts where no rule does. "default": edits and acts are asked. "accept-edits": acts are asked.
"plan": nothing but reads, whatever the rules allow. "deny-all": as "default", but what would be asked is
denied. "bubble": no decision of its own, whoever stands above decides, in the end the user."""

Kind = Literal["allow", "ask", "deny"]

RULE_CHARS = 4_000
_RULE = re.compile(r"([A-Za-z0-9_*-]{1,64})\s*(?:\((.*)\))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Rule:
    """`tool` or `tool(pattern)`. In both `*` stands for anything; a pattern's `\\*` is a star."""

    tool: str
    pattern: str | None
    """None: whatever the arguments are."""

    def __str__(self) -> str:
        return self.tool if self.pattern is None else f"{self.tool}({self.pattern})"


@lru_cache(maxsize=4_096)
def parse_rule(text: str) -> Rule:
    """Raises `ValueError` that says what is wrong."""
    if len(text) > RULE_CHARS:
        raise ValueError(f"a rule has at most {RULE_CHARS} characters, not {len(text)}")
    found = _RULE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text[:80]!r} is no rule: write `tool` or `tool(pattern)`, such as `shell(git *)`")
    pattern: str | None = found[2].strip() if found[2] is not None else None
    if pattern == "":
        raise ValueError(f"{text[:80]!r} has an empty pattern: leave the parentheses out, or write one")
    return Rule(found[1], None if pattern in ("*", "**") else pattern)


@dataclass(frozen=True, slots=True)
class Rules:
    """Deny beats ask beats allow. Each is a text that `parse_rule` takes."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Level:
    """What one of the chain says."""

    who: str
    """An agent's name; of the first level, "settings"."""
    mode: PermissionMode
    rules: Rules = Rules()


@dataclass(frozen=True, slots=True)
class Permissions:
    """The chain from the user's settings down to the run. Each level can only narrow: of what the
    levels say of a call, the strictest counts."""

    levels: tuple[Level, ...] = ()
