"""Blocking work outside the event loop, in a thread of its own."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

Answer = TypeVar("Answer")


async def in_own_thread(work: Callable[[], Answer]) -> Answer:
    """Run `work` in a new daemon thread that sees the caller's context variables.

    Not a pool: code that never returns takes no place from others and does not hold the process at
    its end. Cancelling stops the wait; a thread cannot be stopped, and its answer is dropped.
    """
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[Answer] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Answer) -> None:
        if not answer.done():
            answer.set_result(value)

    def fail(error: BaseException) -> None:
        if not answer.done():
            answer.set_exception(error)

    def body() -> None:
        try:
            value = context.run(work)
        except StopIteration as error:
            _tell(loop, fail, RuntimeError(f"StopIteration: {error}"))
        except BaseException as error:  # noqa: BLE001 - handed to whoever waits, whatever it is
            _tell(loop, fail, error)
        else:
            _tell(loop, settle, value)

    threading.Thread(target=body, name="xclaw-tool", daemon=True).start()
    return await answer


def _tell(loop: asyncio.AbstractEventLoop, tell: Callable[[Answer], None], value: Answer) -> None:
    """Hand over on the loop; where that has ended meanwhile, nobody waits any more."""
    try:
        loop.call_soon_threadsafe(tell, value)
    except RuntimeError:
        if not loop.is_closed():
            raise
