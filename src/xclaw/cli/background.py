"""An event loop in a thread of its own, so that the main thread can wait for a person at the keyboard."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from types import TracebackType
from typing import Generic, Self, TypeVar

Inside = TypeVar("Inside")
Answer = TypeVar("Answer")


class Background(Generic[Inside]):
    """Opens something in its loop on entering, and closes it on leaving, whatever goes on in it."""

    def __init__(self, opening: Callable[[], AbstractAsyncContextManager[Inside]]) -> None:
        self._opening = opening
        self._ready: concurrent.futures.Future[Inside] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._live, name="xclaw-background")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[None] | None = None
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        """Raises what opening raises."""
        self._thread.start()
        try:
            self._ready.result()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()
        if self._failure is not None and error is None:
            raise self._failure

    def start(
        self, body: Callable[[Inside], Coroutine[None, None, Answer]]
    ) -> "concurrent.futures.Future[Answer]":
        """Run `body` in the loop. Waiting for the answer can be interrupted from the keyboard."""
        loop = self._loop
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(body(self._ready.result()), loop)

    def call(self, body: Callable[[Inside], Coroutine[None, None, Answer]]) -> Answer:
        """Run `body` in the loop and wait for its answer."""
        return self.start(body).result()

    def soon(self, callback: Callable[[Inside], None]) -> None:
        """Have the loop call something."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(callback, self._ready.result())

    def _live(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if self._ready.done():
                self._failure = error
            else:
                self._ready.set_exception(error)

    async def _main(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        with suppress(asyncio.CancelledError):  # it is how this ends
            async with self._opening() as inside:
                self._ready.set_result(inside)
                await asyncio.get_running_loop().create_future()

    def _end(self) -> None:
        if self._loop is not None and self._task is not None:
            with suppress(RuntimeError):  # it has ended by itself
                self._loop.call_soon_threadsafe(self._task.cancel)
        self._thread.join()
