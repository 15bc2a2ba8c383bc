"""Texts that the runtime itself puts on a scratchpad: reports and plans of a coordinator's phases."""

import logging
from collections.abc import Awaitable, Callable

from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import Scratchpad
from xclaw.contracts.tools import ToolContext
from xclaw.memory.arguments import Locate, key_of, whose_run

logger = logging.getLogger(__name__)


def pad_keeper(
    pad: Scratchpad, locate: Locate = whose_run
) -> Callable[[ToolContext, str, str, str], Awaitable[str]]:
    """Keeps a text: context, name, text, author. Answers the entry's name, or "" when it cannot be kept, which
    is logged: nobody's work should fail for it."""

    async def keep(context: ToolContext, name: str, text: str, author: str) -> str:
        try:
            entry = await pad.write(
                locate(context), name, text, author=author, key=f"{key_of(context)}\0{name}"
            )
        except (UsageError, OSError) as failure:
            logger.warning("%s is not on the scratchpad: %s", name, failure)
            return ""
        return entry.name

    return keep
