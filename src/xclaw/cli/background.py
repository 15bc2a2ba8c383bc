"""The app in a thread of its own, so that the main thread can wait for a person at the keyboard."""

import asyncio
import concurrent.futures
import threading
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from xclaw.app import App
    from xclaw.settings import Settings

Answer = TypeVar("Answer")


class BackgroundApp:
    """Opens the app on entering and closes it on leaving, which ends what still runs in it."""

    def __init__(self, settings: "Settings") -> None:
        self._settings = settings
        self._ready: concurrent.futures.Future[App] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._live, name="xclaw-app")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: asyncio.Event | None = None
        self._failure: BaseException | None = None

    def __enter__(self) -> Self:
        """Raises what opening the app raises."""
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
        self, body: Callable[["App"], Coroutine[None, None, Answer]]
    ) -> "concurrent.futures.Future[Answer]":
        """Run `body` in the app's loop. Waiting for the answer can be interrupted from the keyboard."""
        loop = self._loop
        assert loop is not None
        return asyncio.run_coroutine_threadsafe(body(self._ready.result()), loop)

    def call(self, body: Callable[["App"], Awaitable[Answer]]) -> Answer:
        """Run `body` in the app's loop and wait for its answer."""

        async def awaited(app: "App") -> Answer:
            return await body(app)

        return self.start(awaited).result()

    def soon(self, callback: Callable[[], None]) -> None:
        """Have the app's loop call something."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(callback)

    def _live(self) -> None:
        try:
            asyncio.run(self._main())
        except BaseException as error:
            if self._ready.done():
                self._failure = error
            else:
                self._ready.set_exception(error)

    async def _main(self) -> None:

        from xclaw.cli.opening import opened

        self._loop = asyncio.get_running_loop()
        self._leave = asyncio.Event()
        async with opened(self._settings) as app:
            self._ready.set_result(app)
            await self._leave.wait()

    def _end(self) -> None:
        if self._leave is not None and self._thread.is_alive():
            self.soon(self._leave.set)
        self._thread.join()
