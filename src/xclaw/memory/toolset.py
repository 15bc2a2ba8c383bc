"""All tools of this room, wired alike in xclaw's own process and in a worker's: files and locks are shared."""

from xclaw.contracts.tools import Tool
from xclaw.memory.knowledge import KnowledgeBase
from xclaw.memory.knowledge_tool import knowledge_tool
from xclaw.memory.layout import places_of
from xclaw.memory.meaning import Embedder
from xclaw.memory.memory import FileMemory
from xclaw.memory.pad_tools import scratchpad_tools
from xclaw.memory.scratchpad import FileScratchpad
from xclaw.memory.settings import MemorySettings
from xclaw.memory.tools import memory_tools


def stored_tools(settings: MemorySettings, embedder: Embedder | None) -> tuple[Tool, ...]:
    """Memory, scratchpad, knowledge base. Makes and opens nothing."""

    def base_of(user: str) -> KnowledgeBase:
        return KnowledgeBase(places_of(settings.root, user), settings, embedder)

    memory, pad = FileMemory(settings, embedder), FileScratchpad(settings)
    return (*memory_tools(memory), *scratchpad_tools(pad), knowledge_tool(base_of))
