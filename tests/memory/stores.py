"""Memory, scratchpad and knowledge base in a directory of the test's own, and the context of a tool call."""

from dataclasses import replace
from pathlib import Path

from tools.workspaces_for_tools import make_setup
from xclaw.contracts.tools import ToolContext
from xclaw.memory.knowledge import KnowledgeBase
from xclaw.memory.layout import places_of
from xclaw.memory.memory import FileMemory
from xclaw.memory.notebook import Notebook
from xclaw.memory.settings import MemorySettings


def settings_in(root: Path, **changes: int) -> MemorySettings:
    settings = MemorySettings(str(root / "memory"), str(root / "pads"), durable=False)
    return replace(settings, **changes)


def memory_in(root: Path, **changes: int) -> FileMemory:
    return FileMemory(settings_in(root, **changes), None)


def notebook_in(root: Path, user: str = "owner", **changes: int) -> Notebook:
    return memory_in(root, **changes).notebook(user)


def knowledge_in(root: Path, user: str = "owner", **changes: int) -> KnowledgeBase:
    settings = settings_in(root, **changes)
    return KnowledgeBase(places_of(settings.root, user), settings, None)


def context_in(
    root: Path, agent: str = "coder", call_id: str = "call-1", run_id: str = "run-1"
) -> ToolContext:
    made = make_setup(root / "workspace").context
    return replace(made, agent=agent, call_id=call_id, run_id=run_id)
