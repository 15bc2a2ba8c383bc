"""One tree in its home: its process, the processes below it, and what is left of them."""

import asyncio
import json
import os
import select
import signal
import time
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.crash.big_tree_checks import check_files, check_gone, check_journal, expect, processes_of, settled
from tests.crash.big_tree_job import write_agents
from tests.crash.test_kill import Provider

from xclaw.app import open_app
from xclaw.contracts.events import Entry, RunEnded
from xclaw.models.settings import Price
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, Settings, load_settings
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings

JOB, PING, SESSION = "GROW: the whole grove", "PING", "grove"
MODEL = "openai:fake"
TWO_CENTS = Price(1_000.0, 5_000.0)
"""Of each call, with the 10 and 2 tokens that the provider counts."""
CONFIRM_S = 5.0

Work = Callable[[], Awaitable[object]]


class Grown:
    """A process forked from this one, which has everything imported, and what it answers."""

    def __init__(self, work: Work, home: Path) -> None:
        self.ended = False
        self._read, write = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._read)
            os.environ["HOME"] = str(home)
            os._exit(_report(work, write))
        os.close(write)

    def ends_within(self, seconds: float | None) -> bool:
        """Whether it has something to say by then, or is dead."""
        return bool(select.select([self._read], [], [], seconds)[0])

    def end(self) -> tuple[int, Any]:
        """Exit code and answer, once it has ended."""
        self.ended = True
        with os.fdopen(self._read, "rb") as pipe:
            said = pipe.read().decode()
        _, status = os.waitpid(self.pid, 0)
        code = os.waitstatus_to_exitcode(status)
        return code, json.loads(said) if code == 0 else said


def _report(work: Work, write: int) -> int:
    try:
        said, code = json.dumps(asyncio.run(work())), 0  # pyright: ignore[reportArgumentType] - all are coroutines
    except BaseException:  # noqa: BLE001 - the last frame of a forked process: report and exit
        said, code = traceback.format_exc(), 1
    with os.fdopen(write, "wb") as pipe:
        pipe.write(said.encode())
    return code


def settings_of(home: Path, url: str) -> Settings:
    env = {"XCLAW_HOME": str(home), "HOME": str(home), "OPENAI_API_KEY": "x", "OPENAI_BASE_URL": url}
    overrides = Overrides(models=(MODEL,), worker_timeout_s=1_200, budget_usd=10_000)
    settings = load_settings(cwd=home, env=env, overrides=overrides)
    return replace(
        settings,
        workspace=replace(settings.workspace, durable=False),
        runtime=replace(settings.runtime, max_depth=4),
        models=replace(settings.models, prices={MODEL: TWO_CENTS}),
    )


@dataclass(slots=True)
class Tally:
    """What has happened so far."""

    seed: int
    trees: int = 0
    kills: Counter[str] = field(default_factory=Counter[str])
    cancels: Counter[str] = field(default_factory=Counter[str])
    ends: Counter[str] = field(default_factory=Counter[str])
    """Outcomes of all runs of all trees."""
    asked: int = 0
    """Requests that the provider got."""
    lost: int = 0
    """Of them, those that no journal knows: in flight at a kill."""
    most_lost: int = 0
    slowest_gone_s: float = 0.0
    slowest_confirm_s: float = 0.0
    load: tuple[float, ...] = ()
    """Of the machine at the end."""
    faults: list[str] = field(default_factory=list[str])


class Grove:
    """One tree in its home."""

    def __init__(self, home: Path, provider: Provider, tally: Tally) -> None:
        self.home = home
        self._provider = provider
        self._tally = tally
        self._grown: list[Grown] = []
        write_agents(home)
        provider.reset()

    def run(self) -> Grown:
        return self._fork(self._run)

    def resume(self) -> Grown:
        return self._fork(self._resume)

    def _fork(self, work: Work) -> Grown:
        self._grown.append(Grown(work, self.home))
        return self._grown[-1]

    def abandon(self) -> None:
        """Kill what a fault has left."""
        for grown in self._grown:
            if not grown.ended:
                os.kill(grown.pid, signal.SIGKILL)
                grown.end()
        for pid in processes_of(self.home):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def cancel_itself(self, after_s: float) -> Grown:
        async def work() -> object:
            return await self._cancel_itself(after_s)

        return self._fork(work)

    def cancel_from_outside(self, root_id: str) -> Grown:
        async def work() -> object:
            async with open_app(settings_of(self.home, self._provider.url)) as app:
                began = time.monotonic()
                async with asyncio.timeout(CONFIRM_S):
                    ends = await app.cancel(root_id, "not needed any more")
                return [time.monotonic() - began, self._quiet(), [asdict(end) for end in ends]]

        return self._fork(work)

    async def _run(self) -> object:
        async with open_app(settings_of(self.home, self._provider.url)) as app:
            result = await (await app.runs.start(RunRequest(JOB, SESSION))).result()
            return [[result.outcome, result.reason]]

    async def _resume(self) -> object:
        async with open_app(settings_of(self.home, self._provider.url)) as app:
            rows = await app.runs.interrupted()
            results = [await (await app.runs.resume(row.run_id)).result() for row in rows]
            return [[result.outcome, result.reason] for result in results]

    async def _cancel_itself(self, after_s: float) -> object:
        """Seconds until all was confirmed, requests by then, and how each run ended; then it goes on with
        something else, whose one request is the only one to come."""
        async with open_app(settings_of(self.home, self._provider.url)) as app:
            handle = await app.runs.start(RunRequest(JOB, SESSION))
            ending = asyncio.create_task(handle.result())
            await asyncio.wait([ending], timeout=after_s)
            if ending.done():
                return None
            began = time.monotonic()
            async with asyncio.timeout(CONFIRM_S):
                ends = await handle.cancel("not needed any more")
            confirmed = time.monotonic() - began
            asked = await asyncio.to_thread(self._quiet)
            pong = await (await app.runs.start(RunRequest(PING, "other"))).result()
            expect(pong.text == "pong", f"after a cancelled tree: {pong}")
            return [confirmed, asked + 1, [asdict(end) for end in ends]]

    def _quiet(self) -> int:
        """Requests, once the provider has none open."""
        until = time.monotonic() + CONFIRM_S
        while (stats := self._provider.stats())["requests"] > stats["finished"] + stats["abandoned"]:
            expect(time.monotonic() < until, f"the provider still serves: {stats}")
        return stats["requests"]

    def entries(self) -> list[Entry]:
        """Of the tree, not of what its process did afterwards."""
        database = self.home / "workspace" / "xclaw.db"
        return asyncio.run(_read(database)) if database.exists() else []

    def after_main_is_dead(self) -> tuple[list[Entry], int]:
        """The journal, and how many requests it does not know."""
        gone_s = check_gone(self.home)
        self._tally.slowest_gone_s = max(gone_s, self._tally.slowest_gone_s)
        entries = self.entries()
        return entries, self._quiet() - settled(entries).calls

    def check_ended(self, *, requests_after: int | None = None) -> list[Entry]:
        entries, lost = self.after_main_is_dead()
        check_journal(entries)
        check_files(entries, self.home / "workspace")
        asked = self._quiet()
        expect(requests_after in (None, asked), f"{requests_after} requests, then {asked}")
        self._tally.asked += asked
        if requests_after is None:
            self._tally.lost += max(0, lost)
        self._tally.ends.update(e.event.outcome for e in entries if isinstance(e.event, RunEnded))
        return entries


async def _read(database: Path) -> list[Entry]:
    journal = await SqliteJournal.open(StoreSettings(str(database)))
    try:
        rows = await journal.runs(session_id=SESSION, roots_only=True)
        return [entry for row in rows for entry in await journal.read_tree(row.root_id)]
    finally:
        await journal.close()
