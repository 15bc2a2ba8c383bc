"""From the front matter of one file to an `Agent`: which keys there are, and what they may hold."""

import math
import re
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from xclaw.agents.front_matter import Document, Field, Nested, Value, file_error
from xclaw.agents.names import name_fault
from xclaw.agents.settings import AgentSettings
from xclaw.agents.tool_names import read_tools
from xclaw.contracts.agents import Agent, Isolation, Limits
from xclaw.contracts.permissions import PermissionMode, Rules, parse_rule
from xclaw.contracts.tool_names import COORDINATION_TOOLS

KEYS: Mapping[str, str] = {
    "name": "name",
    "description": "description",
    "tools": "tools",
    "allowedtools": "tools",
    "disallowedtools": "disallowedTools",
    "model": "model",
    "models": "model",
    "maxturns": "maxTurns",
    "timeout": "timeout",
    "timeouts": "timeout",
    "maxbudgetusd": "max_budget_usd",
    "maxusd": "max_budget_usd",
    "maxtokens": "max_tokens",
    "permissionmode": "permissionMode",
    "allow": "allow",
    "ask": "ask",
    "deny": "deny",
    "isolation": "isolation",
    "script": "script",
    "memory": "memory",
    "orchestrator": "orchestrator",
}
"""Folded spelling (no "-", "_" or case) to the key's name in messages."""

_IGNORED = frozenset({"color"})
"""Keys of other tools that change nothing here, passed over in silence."""
_FOREIGN = frozenset({"skills", "mcpservers", "hooks", "effort", "background", "initialprompt", "version"})

_ISOLATIONS: Mapping[str, Isolation] = {
    "local": "local",
    "forked": "forked",
    "remote": "remote",
    "teammate": "teammate",
}
_PERMISSIONS: Mapping[str, PermissionMode] = {
    "default": "default",
    "acceptedits": "accept-edits",
    "plan": "plan",
    "bubble": "bubble",
    "denyall": "deny-all",
    "inherit": "bubble",
    "dontask": "deny-all",
    "ask": "default",
    "deny": "deny-all",
}
"""Folded spelling (no "-", "_" or case) to the mode; Claude Code's and earlier names among them."""
_TOO_WIDE = frozenset({"bypasspermissions", "allow"})
"""An agent's file cannot let it do what nobody above it may."""
_MODEL_NICKNAMES = frozenset({"sonnet", "opus", "haiku", "default", "best"})
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|sec|m|min|h)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "sec": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}


def agent_from(document: Document, source: str, settings: AgentSettings) -> tuple[Agent, tuple[str, ...]]:
    """The agent of one file, and warnings as "file:line: text". Raises `UsageError` in the same form."""
    reader = _Reader(document, source)
    name = reader.text("name")
    fault = name_fault(name)
    if fault:
        raise reader.error("name", f"the name {name[:60]!r} {fault}")
    description = reader.text("description")
    if not document.body:
        raise file_error(
            source, reader.last_line, "the instructions are missing: write them below the front matter"
        )
    tools = read_tools(reader.names("tools"), reader.names("disallowedTools"), settings)
    reader.warn_all(tools.warnings)
    script = _script(reader, source, settings)
    isolation, worktree = _isolation(reader, script)
    agent = Agent(
        name=name,
        description=" ".join(description.split()),
        instructions=document.body,
        models=_models(reader),
        tools=tools.names,
        limits=Limits(
            max_turns=reader.whole_number("maxTurns"),
            timeout_s=_duration(reader),
            max_tokens=reader.whole_number("max_tokens"),
            max_usd=reader.amount("max_budget_usd"),
        ),
        isolation=isolation,
        worktree=worktree,
        permission_mode=_permission_mode(reader),
        rules=_rules(reader),
        memory=_memory(reader),
        orchestrator=reader.flag("orchestrator")
        or any(name in COORDINATION_TOOLS for name in tools.names or ()),
        script=script,
        source=source,
    )
    return agent, tuple(reader.warnings)


class _Reader:
    """The fields of one file under their folded names, and the warnings that reading them gave."""

    def __init__(self, document: Document, source: str) -> None:
        self._source = source
        self._fields: dict[str, Field] = {}
        self.last_line = 1
        self.warnings = list(document.warnings)
        for field in document.fields:
            self.last_line = max(self.last_line, field.line)
            self._take(field)

    def _take(self, field: Field) -> None:
        folded = re.sub(r"[-_\s]", "", field.key).casefold()
        key = KEYS.get(folded)
        if key is None:
            if folded not in _IGNORED:
                self._warn(field.line, _unknown_key(field.key, folded))
            return
        first = self._fields.get(key)
        if first is not None:
            raise file_error(
                self._source,
                field.line,
                f"`{field.key}` stands here again: line {first.line} has `{first.key}`",
            )
        self._fields[key] = field

    def _warn(self, line: int, text: str) -> None:
        self.warnings.append(f"{self._source}:{line}: {text}")

    def warn(self, key: str, text: str) -> None:
        self._warn(self._line(key), text)

    def warn_all(self, texts: tuple[tuple[str, str], ...]) -> None:
        for key, text in texts:
            self.warn(key, text)

    def _line(self, key: str) -> int:
        field = self._fields.get(key)
        return field.line if field else self.last_line

    def error(self, key: str, reason: str) -> Exception:
        return file_error(self._source, self._line(key), reason)

    def _wrong(self, key: str, expected: str) -> Exception:
        field = self._fields[key]
        return self.error(key, f"`{field.key}` must be {expected}, not {_shown(field)}")

    def value(self, key: str) -> Value:
        field = self._fields.get(key)
        return field.value if field else None

    def text(self, key: str) -> str:
        """A text that must be there."""
        value = self.value(key)
        if value is None or value == "":
            raise self.error(key, f"`{key}` is missing: add a line `{key}: ...` to the front matter")
        if not isinstance(value, str):
            raise self._wrong(key, "text (put quotes around it)")
        if not value.strip():
            raise self.error(key, f"`{key}` is empty")
        return value.strip()

    def names(self, key: str) -> tuple[str, ...] | None:
        """A list, or a text with commas; None when the key is not there or has no value."""
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, str):
            return tuple(part.strip() for part in _split_outside_parentheses(value) if part.strip())
        if isinstance(value, list):
            items = [item for item in value if isinstance(item, str)]
            if len(items) == len(value):
                return tuple(item.strip() for item in items if item.strip())
        raise self._wrong(key, "names with commas between them, or a list of names")

    def whole_number(self, key: str) -> int | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise self._wrong(key, "a whole number of at least 1")
        return value

    def amount(self, key: str) -> float | None:
        value = self.value(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
            raise self._wrong(key, "a number above 0")
        return float(value)

    def flag(self, key: str) -> bool:
        value = self.value(key)
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def word(self, key: str, expected: str) -> str | None:
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self._wrong(key, expected)
        return value.strip()

    def wrong_word(self, key: str, expected: str) -> Exception:
        return self._wrong(key, expected)


def _models(reader: _Reader) -> tuple[str, ...]:
    chain: list[str] = []
    for model in reader.names("model") or ():
        folded = model.casefold()
        if folded == "inherit":
            continue
        if folded in _MODEL_NICKNAMES:
            reader.warn(
                "model", f"the model {model!r} names no provider; the default models are used instead"
            )
        elif re.search(r"\s", model) and ":" not in model:
            raise reader.wrong_word("model", '"inherit", `provider:model`, or a list of those')
        else:
            chain.append(model)
    return tuple(chain)


def _duration(reader: _Reader) -> float | None:
    expected = 'seconds above 0, or a text such as "90s", "5m" or "1h"'
    value = reader.value("timeout")
    if not isinstance(value, str):
        return reader.amount("timeout")
    match = _DURATION.fullmatch(value.strip().casefold())
    seconds = float(match.group(1)) * _SECONDS[match.group(2) or "s"] if match else 0.0
    if not 0 < seconds < math.inf:
        raise reader.wrong_word("timeout", expected)
    return seconds


def _isolation(reader: _Reader, script: tuple[str, ...]) -> tuple[Isolation, bool]:
    """The kind of sub-agent, and whether it works in a tree of its own: `worktree` may stand with a kind."""
    expected = f"one of {', '.join(_ISOLATIONS)}, worktree, or worktree and one of those"
    words = [word.casefold() for word in reader.names("isolation") or ()]
    kinds = [word for word in words if word != "worktree"]
    if script and kinds not in ([], ["forked"]):
        raise reader.wrong_word("isolation", "forked, as the agent is a script; worktree may stand with it")
    if len(kinds) > 1 or any(word not in _ISOLATIONS for word in kinds):
        raise reader.wrong_word("isolation", expected)
    kind: Isolation = _ISOLATIONS[kinds[0]] if kinds else "forked" if script else "local"
    return kind, "worktree" in words


def _script(reader: _Reader, source: str, settings: AgentSettings) -> tuple[str, ...]:
    """The program that the agent is, with its arguments; a relative path is from the agent's file."""
    words = reader.names("script")
    if not words:
        return ()
    if not any(Path(source).is_relative_to(directory) for directory in settings.script_directories):
        reader.warn(
            "script",
            "`script` has no effect here: only files in your own agents directory "
            f"({', '.join(settings.script_directories) or 'there is none'}) may name programs to be run",
        )
        return ()
    path = Path(source).parent / Path(words[0]).expanduser()
    if not path.is_file():
        raise reader.error("script", f"the script {str(path)!r} is not there")
    return (str(path), *words[1:])


def _permission_mode(reader: _Reader) -> PermissionMode:
    expected = f"one of {', '.join(dict.fromkeys(_PERMISSIONS.values()))}"
    word = reader.word("permissionMode", expected)
    if word is None:
        return "bubble"
    folded = re.sub(r"[-_\s]", "", word).casefold()
    mode = _PERMISSIONS.get(folded)
    if mode is not None:
        return mode
    if folded not in _TOO_WIDE:
        raise reader.wrong_word("permissionMode", expected)
    reader.warn(
        "permissionMode",
        f"`permissionMode: {word}` is read as `bubble`: only your settings can let an agent do more",
    )
    return "bubble"


def _rules(reader: _Reader) -> Rules:
    return Rules(_rule_list(reader, "allow"), _rule_list(reader, "ask"), _rule_list(reader, "deny"))


def _rule_list(reader: _Reader, key: str) -> tuple[str, ...]:
    written = reader.names(key) or ()
    for rule in written:
        try:
            parse_rule(rule)
        except ValueError as failure:
            raise reader.error(key, f"`{key}`: {failure}") from None
    return written


def _memory(reader: _Reader) -> bool:
    value = reader.value("memory")
    if isinstance(value, str) and value.strip().casefold() in ("user", "project", "local"):
        return True
    return reader.flag("memory")


def _unknown_key(written: str, folded: str) -> str:
    if folded in _FOREIGN:
        return f"`{written}` has no effect here"
    shown = written[:60]
    close = get_close_matches(folded, KEYS, n=1, cutoff=0.7)
    if close:
        return f"unknown key `{shown}`; did you mean `{KEYS[close[0]]}`?"
    return f"unknown key `{shown}`; known are {', '.join(dict.fromkeys(KEYS.values()))}"


def _shown(field: Field) -> str:
    if isinstance(field.value, Nested):
        return "a nested value"
    text = repr(field.value)
    return text if len(text) <= 60 else f"{text[:60]}..."


def _split_outside_parentheses(text: str) -> list[str]:
    """`Bash(git diff, git log), Read` has two names."""
    return re.split(r",(?![^()]*\))", text)
