"""Whether rules match a call. A doubt counts against running: what allows matches narrowly, what asks or
denies widely."""

import fnmatch
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import urlsplit

from xclaw.agents.names import agent_key
from xclaw.agents.tool_names import COUNTERPARTS as AGENT_FILES
from xclaw.contracts.permissions import RULE_CHARS, Kind, Rule, parse_rule
from xclaw.contracts.unicode_forms import is_unicode, normal_form
from xclaw.contracts.workspaces import Workspace
from xclaw.loop.json_blocks import encode_json
from xclaw.runtime.shell_commands import Simple, split_command, spoken_of

PATH_TOOLS = frozenset({"view_file", "list_dir", "search", "write_file", "edit_file", "deliver"})
AGENT_TOOLS = frozenset({"delegate", "spawn"})
"""Of these a pattern is compared with the agent that is handed work, however its name is spelled."""
COUNTERPARTS: Mapping[str, str] = {**AGENT_FILES, "webfetch": "web_fetch"}
"""Claude Code's names of tools, folded, to ours."""
PATH_CHARS = 4_096
_KEY = re.compile(r"[A-Za-z_][\w.-]*")
_HOST = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Call:
    """A call that somebody wants to make, as far as rules look at it."""

    tool: str
    arguments: Mapping[str, object]
    directory: str
    """What a relative path is relative to."""
    real: str = ""
    """Where the links of its path lead; empty: as they lead on this machine."""

    @property
    def command(self) -> str:
        return str(self.arguments.get("command", ""))


def call_of(tool: str, arguments: Mapping[str, object], workspace: Workspace) -> Call:
    """A call of a run with this workspace; paths are judged by what they mean on this machine."""
    if tool == "deliver":
        return Call(tool, arguments, workspace.delivery_dir)
    path = arguments.get("path")
    if tool not in PATH_TOOLS or not isinstance(path, str) or not _is_path(path):
        return Call(tool, arguments, workspace.private_dir)
    meant, real = workspace.judged(path)
    return Call(tool, {**arguments, "path": meant}, workspace.private_dir, real)


def matching(kind: Kind, rules: Iterable[str], call: Call) -> str:
    """The rule that decides, as text; empty when none does."""
    named = [rule for rule in map(parse_rule, rules) if _is_named(rule.tool, call.tool)]
    if not named:
        return ""
    whole = next((str(rule) for rule in named if rule.pattern is None), "")
    if whole:
        return whole
    if call.tool == "shell":
        return _matching_command(kind, named, call.command)
    return next((str(rule) for rule in named if _fits(kind, rule.pattern or "", call)), "")


def is_clear(call: Call) -> bool:
    """Whether rules about arguments can be told to match or not. A command that cannot be read may be
    anything."""
    return call.tool != "shell" or split_command(call.command) is not None


def has_patterns(rules: Iterable[str], tool: str) -> bool:
    """Whether some rule looks at the arguments of `tool`."""
    return any(_is_named(rule.tool, tool) and rule.pattern is not None for rule in map(parse_rule, rules))


def exact_rule(call: Call) -> str:
    """The rule for exactly this call; empty when it would be too long to be kept. Of a page, its host."""
    host = host_of(str(call.arguments.get("url", ""))) if call.tool == "web_fetch" else ""
    if host:
        return f"{call.tool}(domain:{host})"
    if call.tool == "shell":
        pattern = _escaped(call.command.strip())
    elif call.tool in PATH_TOOLS:
        path = _path(call)
        pattern = _escaped(call.real or _resolved(path, call.directory)) if _is_path(path) else ""
    else:
        pattern = _escaped(_json(call.arguments))
    rule = f"{call.tool}({pattern})"
    return rule if pattern and len(rule) <= RULE_CHARS and rule.isprintable() else ""


def tool_named(written: str) -> str:
    """The tool that a rule names, which may have stars."""
    return COUNTERPARTS.get(written.casefold(), written)


def _is_named(written: str, tool: str) -> bool:
    known = tool_named(written)
    return known == tool or ("*" in known and fnmatch.fnmatchcase(tool, known))


def _matching_command(kind: Kind, rules: list[Rule], command: str) -> str:
    patterns = [(rule.pattern or "", str(rule)) for rule in rules]
    exact = next((text for pattern, text in patterns if _escaped(command.strip()) == pattern), "")
    if exact:
        return exact
    if kind != "allow":
        spoken = spoken_of(command)
        return next((text for pattern, text in patterns if any(_like(pattern, said) for said in spoken)), "")
    simple = split_command(command)
    if simple is None:
        return ""
    found = [next((text for pattern, text in patterns if _runs(pattern, one)), "") for one in simple]
    return found[0] if all(found) else ""


def _runs(pattern: str, simple: Simple) -> bool:
    return _like(pattern, simple.canonical) or _like(pattern, simple.text)


def _like(pattern: str, command: str) -> bool:
    """` *` at the end, and Claude Code's `:*`, match the command without arguments too."""
    if pattern.endswith(":*"):
        pattern = pattern[:-2] + " *"
    if pattern.endswith(" *") and _glob(pattern[:-2], command):
        return True
    return _glob(pattern, command)


def _fits(kind: Kind, pattern: str, call: Call) -> bool:
    if call.tool in PATH_TOOLS:
        return _fits_path(kind, pattern, call)
    if pattern.startswith("domain:"):
        return _fits_host(kind, pattern.removeprefix("domain:"), str(call.arguments.get("url", "")))
    key, colon, rest = pattern.partition(":")
    # Whoever calls may name an argument as a pattern for all arguments begins, such as `{"to"`.
    if colon and key in call.arguments and _KEY.fullmatch(key):
        return _glob(rest, _text(call.arguments[key]))
    if call.tool in AGENT_TOOLS:
        return _fits_agent(pattern, _text(call.arguments.get("agent")))
    return _glob(pattern, _json(call.arguments))


def _fits_agent(pattern: str, name: str) -> bool:
    """By the name as it is understood: "Coder" and "@coder" are handed the same work as "coder"."""
    folded = normal_form("NFKC", pattern).casefold()
    return _glob(pattern, name) or _glob(re.sub(r"[\s_-]+", " ", folded.strip()), agent_key(name))


def _fits_path(kind: Kind, pattern: str, call: Call) -> bool:
    path = _path(call)
    if not _is_path(path) or "\0" in pattern:
        return kind != "allow"
    real = call.real or _resolved(path, call.directory)
    named = os.path.normpath(Path(call.directory, path))
    base = os.path.realpath(call.directory)
    patterns = [_anchored(pattern, base), _anchored(pattern, call.directory)]
    if kind == "allow":
        return _path_glob(patterns[0])(_normal(real)) is not None
    return any(_path_glob(one)(_normal(place)) for one in patterns for place in (real, named))


def _anchored(pattern: str, directory: str) -> str:
    if pattern.startswith("~/"):
        return _normal(str(Path(pattern).expanduser()))
    # A directory may hold what a pattern would read as a wildcard.
    return pattern if pattern.startswith("/") else f"{_escaped(directory)}/{pattern.removeprefix('./')}"


def _fits_host(kind: Kind, pattern: str, url: str) -> bool:
    host = host_of(url)
    if not host:
        return kind != "allow"
    wanted = pattern.strip().casefold().rstrip(".")
    if _glob(wanted, host):
        return True
    return kind != "allow" and _glob(f"*.{wanted}", host)


def host_of(url: str) -> str:
    """The host of an address; empty when readers could differ about which it is."""
    if not url.isascii() or not url.isprintable() or re.search(r"[\s\\@]", url):
        return ""
    try:
        parts = urlsplit(url)
        host = (parts.hostname or "").rstrip(".")
    except ValueError:
        return ""
    return host if parts.scheme in ("http", "https") and _HOST.fullmatch(host) else ""


def _path(call: Call) -> str:
    return str(call.arguments.get("path", "."))


def _is_path(text: str) -> bool:
    """Whether a file could have that name: else the tool will refuse it."""
    return 0 < len(text) <= PATH_CHARS and "\0" not in text and is_unicode(text)


def _resolved(path: str, directory: str) -> str:
    return os.path.realpath(Path(directory, path))


def _normal(path: str) -> str:
    return normal_form("NFC", path)


def _text(value: object) -> str:
    return value if isinstance(value, str) else encode_json(value)


def _json(arguments: Mapping[str, object]) -> str:
    return encode_json(dict(arguments), sort_keys=True)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("*", "\\*")


def _glob(pattern: str, text: str) -> bool:
    """`*` is anything. In linear time, whatever the text is."""
    first, *others = _pieces(pattern)
    if not others:
        return text == first
    *middle, last = others
    if len(text) < len(first) + len(last) or not text.startswith(first) or not text.endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for piece in middle:
        at = text.find(piece, at, end)
        if at < 0:
            return False
        at += len(piece)
    return True


@lru_cache(maxsize=4_096)
def _pieces(pattern: str) -> tuple[str, ...]:
    """What stands between the stars."""
    pieces = [""]
    for literal, star, other in re.findall(r"\\([\\*])|(\*+)|([\s\S])", pattern):
        if star:
            pieces.append("")
        else:
            pieces[-1] += literal or other
    return tuple(pieces)


@lru_cache(maxsize=4_096)
def _path_glob(pattern: str) -> Callable[[str], object]:
    """`*` stays within one name, `**` goes on through directories; `dir/**` is the directory too."""
    pattern = _normal(pattern)
    below = pattern.endswith("/**")
    pieces: list[str] = []
    for literal, deep, star, other in re.findall(
        r"\\([\\*])|(\*\*+/?)|(\*)|([\s\S])", pattern[:-3] if below else pattern
    ):
        if deep:
            pieces.append(r"(?:[\s\S]*/)?" if deep.endswith("/") else r"[\s\S]*")
        else:
            pieces.append(r"[^/]*" if star else re.escape(literal or other))
    return re.compile("".join(pieces) + (r"(?:/[\s\S]*)?" if below else "")).fullmatch
