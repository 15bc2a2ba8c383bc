"""The `Memory` of this machine: files under one directory, a part of it for each user."""

import asyncio
import logging
from functools import lru_cache
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import MemoryScope, Recalled
from xclaw.contracts.users import OWNER
from xclaw.memory.blocks import notes_block
from xclaw.memory.layout import TRANSCRIPT, places_of
from xclaw.memory.meaning import Embedder
from xclaw.memory.notebook import Notebook
from xclaw.memory.settings import MemorySettings
from xclaw.memory.transcript import log_turn

logger = logging.getLogger(__name__)


@lru_cache(maxsize=1024)
def _agent_directory(root: str, user: str, agent: str) -> str:
    """Asked for with every run, and `pathlib` takes its time."""
    return str(places_of(root, user).agent_directory(agent))


class FileMemory:
    """See `Memory`. Holds nothing open, so there is nothing to close."""

    def __init__(self, settings: MemorySettings, embedder: Embedder | None) -> None:
        self.settings = settings
        self._embedder = embedder

    def notebook(self, user: str = OWNER) -> Notebook:
        """One user's notes, for callers that may block. Raises `UsageError` for a name that is none."""
        return Notebook(places_of(self.settings.root, user), self.settings, self._embedder)

    def agent_directory(self, agent: str, user: str = OWNER) -> str:
        """Where an agent's own files are; it may not be there yet."""
        return _agent_directory(self.settings.root, user, agent)

    async def remember(
        self, text: str, *, agent: str, scope: MemoryScope = "own", user: str = OWNER, key: str = ""
    ) -> str:
        return await asyncio.to_thread(self.notebook(user).remember, text, agent, scope, key)

    async def recall(self, query: str, k: int, *, agent: str, user: str = OWNER) -> list[Recalled]:
        return await asyncio.to_thread(self.notebook(user).recall, query, k, agent)

    async def forget(self, note_id: str, *, agent: str, user: str = OWNER) -> Recalled:
        return await asyncio.to_thread(self.notebook(user).forget, note_id, agent)

    async def recalled_block(self, query: str, *, agent: str, user: str = OWNER) -> str:
        k = self.settings.recall_k
        if k <= 0 or not query.strip():
            return ""
        try:
            if places_of(self.settings.root, user).is_bare(agent):
                return ""  # as for most agents: not worth a thread
            notes = await self.recall(query, k, agent=agent, user=user)
        except (UsageError, OSError) as error:
            logger.warning("nothing is recalled: %s", error)
            return ""
        return notes_block(notes) if notes else ""

    async def log_turn(
        self, said: str, answer: str, *, agent: str, session_id: str, user: str = OWNER
    ) -> None:
        path = Path(self.agent_directory(agent, user)) / TRANSCRIPT
        most = self.settings.max_transcript_bytes
        await asyncio.to_thread(log_turn, path, session_id, said, answer, max_bytes=most)
