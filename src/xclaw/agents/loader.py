"""Finds and reads agent files: the built-in ones and those in users' directories."""

import os
import stat
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.resources import files
from pathlib import Path

from xclaw.agents.definition import agent_from
from xclaw.agents.front_matter import Document, parse_document
from xclaw.agents.names import agent_key
from xclaw.agents.registry import AgentRegistry
from xclaw.agents.settings import AgentSettings
from xclaw.contracts.agents import Agent
from xclaw.contracts.errors import UsageError

MAX_FOLDER_DEPTH = 6
MAX_ERRORS_SHOWN = 10


def load_agents(
    settings: AgentSettings, python_agents: Iterable[Agent] = ()
) -> tuple[AgentRegistry, tuple[str, ...]]:
    """All agents, and warnings for a person.

    A later source replaces an agent of the same name from an earlier one, and a warning says so: built in,
    then the directories in their order, then those defined in Python. Reads files; call it at start.

    Raises:
        UsageError: every bad file with its line and reason; two files of one directory with one name.
    """
    registry, warnings = builtin_agents(settings), list[str]()
    errors: list[str] = []
    for directory in settings.directories:
        found, texts = _load_directory(Path(directory).expanduser(), settings, errors)
        warnings.extend(texts)
        registry = _override(registry, found, warnings)
    if errors:
        shown = errors[:MAX_ERRORS_SHOWN]
        if len(errors) > len(shown):
            shown.append(f"and {len(errors) - len(shown)} more")
        raise UsageError("\n".join(shown))
    return _override(registry, list(python_agents), warnings), tuple(warnings)


def builtin_agents(settings: AgentSettings | None = None) -> AgentRegistry:
    """The agents that ship with xclaw."""
    known = settings or AgentSettings()
    return AgentRegistry([agent_from(document, "built-in", known)[0] for document in _builtin_documents()])


@cache
def _builtin_documents() -> tuple[Document, ...]:
    """Read once by a process: they are part of the package."""
    folder = files("xclaw.agents").joinpath("builtin")
    items = sorted(
        (item for item in folder.iterdir() if item.name.endswith(".md")), key=lambda item: item.name
    )
    return tuple(parse_document(item.read_text("utf-8"), "built-in") for item in items)


def _override(registry: AgentRegistry, agents: list[Agent], warnings: list[str]) -> AgentRegistry:
    for agent in agents:
        other = registry.get(agent.name)
        if other is not None:
            warnings.append(f"{agent.source}: the agent {agent.name!r} replaces the one from {other.source}")
    return registry.with_agents(agents)


def _load_directory(
    directory: Path, settings: AgentSettings, errors: list[str]
) -> tuple[list[Agent], list[str]]:
    by_key: dict[str, Agent] = {}
    warnings: list[str] = []
    for count, path in enumerate(_agent_files(directory)):
        if count >= settings.max_files:
            errors.append(f"{directory}: more than {settings.max_files} agent files; move some elsewhere")
            break
        try:
            document = parse_document(_read(path, settings.max_file_bytes), str(path))
            agent, texts = agent_from(document, str(path), settings)
        except UsageError as error:
            errors.append(str(error))
            continue
        warnings.extend(texts)
        other = by_key.setdefault(agent_key(agent.name), agent)
        if other is not agent:
            errors.append(f"{path}:1: the agent {agent.name!r} is defined in {other.source} too; rename one")
    return list(by_key.values()), warnings


def _agent_files(directory: Path) -> Iterator[Path]:
    """Every `.md` file below, in a fixed order; links are followed, each folder is entered once."""
    if not directory.exists():
        return
    if not directory.is_dir():
        raise UsageError(f"{directory}: is not a directory; agents are looked for in directories")
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, names in os.walk(directory, followlinks=True):
        status = Path(folder).stat()
        identity = (status.st_dev, status.st_ino)
        depth = len(Path(folder).relative_to(directory).parts)
        if identity in seen or depth > MAX_FOLDER_DEPTH:
            subfolders.clear()
            continue
        seen.add(identity)
        subfolders[:] = sorted(name for name in subfolders if not name.startswith("."))
        for name in sorted(names):
            if name.endswith(".md") and not name.startswith(".") and name.casefold() != "readme.md":
                yield Path(folder) / name


def _read(path: Path, max_bytes: int) -> str:
    """The text of a regular file; a pipe or device, which could block for ever, is refused."""
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(f"{path}:1: is not a regular file")
            data = file.read(max_bytes + 1)
    except OSError as error:
        raise UsageError(f"{path}:1: cannot be read: {error.strerror or error}") from None
    if len(data) > max_bytes:
        raise UsageError(f"{path}:1: is larger than {max_bytes} bytes; agent files are short texts")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise UsageError(f"{path}:{line}: is not UTF-8 text; save it as UTF-8") from None
