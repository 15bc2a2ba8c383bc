"""A run while it goes on, and what of it a client has still to be shown."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace

from xclaw.contracts.events import Entry
from xclaw.contracts.results import Result
from xclaw.gateway.protocols.openai.answer import Answer, answer_of
from xclaw.gateway.protocols.openai.ask import Ask
from xclaw.gateway.protocols.openai.refused import Unmet
from xclaw.gateway.protocols.openai.transcript import Piece, Showing, Transcript
from xclaw.runtime.runs import RunHandle

GONE = "the client went away"
ENOUGH = "its client takes no more of it"


class _Run:
    """One run, listened to."""

    def __init__(self, handle: RunHandle, ask: Ask, news: asyncio.Event) -> None:
        """From the same step of the event loop in which the run began, so that it misses nothing."""
        self.handle = handle
        self.ask = ask
        showing = Showing(ask.is_streamed, ask.is_checked, ask.max_tokens, ask.with_progress)
        self.transcript = Transcript(handle.root_id, showing)
        self._news = news
        self._unsubscribe = handle.subscribe(self._hear)
        self.result: asyncio.Future[Result] = asyncio.ensure_future(handle.result())
        self.result.add_done_callback(lambda _: news.set())

    def _hear(self, entry: Entry) -> None:
        self.transcript.feed(entry)
        if self.transcript.has_news:
            self._news.set()

    async def end(self) -> None:
        """End it, if it goes on."""
        if not self.result.done():
            await self.handle.cancel(GONE)
        self._unsubscribe()
        self.result.cancel()


class LiveAnswer:
    """The run that answers a client; a second one when the first did not do what was asked."""

    def __init__(self, start: Callable[[Ask], Awaitable[RunHandle]]) -> None:
        self._start = start
        self._news = asyncio.Event()
        self._runs: list[_Run] = []

    async def begin(self, ask: Ask) -> None:
        """Raises what starting a run raises."""
        self._runs.append(_Run(await self._start(ask), ask, self._news))

    async def wait(self, within_s: float) -> bool:
        """Whether there was news before the time was over."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._news.wait()
            self._news.clear()
            return True
        return False

    async def take(self) -> list[Piece]:
        """What came meanwhile. Ends a run of which nothing more can be shown."""
        run = self._runs[-1]
        if run.transcript.must_stop and not run.result.done():
            await run.handle.cancel(ENOUGH)
        return [piece for each in self._runs for piece in each.transcript.take()]

    async def settle(self) -> Answer | None:
        """The answer; None while there is none. What it adds to the text can be taken after it.

        Raises `Refused` when there will be none.
        """
        run = self._runs[-1]
        if not run.result.done():
            return None
        result = run.result.result()
        try:
            answer = answer_of(run.transcript, result, run.ask, run.handle.run_id)
        except Unmet as unmet:
            if len(self._runs) > 1:
                raise
            agent = run.transcript.agent
            await self.begin(run.ask.corrected(result.text, unmet.correction, agent))
            return None
        return self._with_earlier(answer)

    async def end(self) -> None:
        """End what goes on."""
        for run in self._runs:
            await run.end()

    def _with_earlier(self, answer: Answer) -> Answer:
        """What an earlier run cost and told belongs to the answer, too."""
        earlier = self._runs[:-1]
        spend = sum((run.result.result().spend for run in earlier), answer.result.spend)
        progress = [run.transcript.progress for run in earlier] + [answer.progress]
        return replace(
            answer,
            result=replace(answer.result, spend=spend),
            progress="\n".join(text for text in progress if text),
        )
