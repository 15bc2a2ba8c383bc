"""The desk on a journal alone, as a command uses it that finds no gateway."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from behaviour.harness import ask, settings_for, write_script
from xclaw.app import App, open_app
from xclaw.contracts.errors import SessionBusy, UsageError
from xclaw.contracts.events import Address, Entry, RunStarted
from xclaw.contracts.sessions import SessionRow
from xclaw.gateway.desk import NoSuchSession, SessionDesk
from xclaw.gateway.export import exported
from xclaw.testing.sample_events import sample_events

SCRIPT: list[dict[str, object]] = [
    {"agent": "orchestrator", "replies": [{"text": "hello"}]},
    {"agent": "skeptic", "replies": [{"text": "I doubt it"}]},
]


def at_the_desk(home: Path, body: Callable[[App, SessionDesk], Awaitable[None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20), open_app(settings_for(home, write_script(home, SCRIPT))) as app:
            await body(app, SessionDesk(app.journal.sessions, app.journal, app.runs, app.agents))

    asyncio.run(main())


async def export(desk: SessionDesk, session: str) -> str:
    return "".join([piece async for piece in await desk.export(session)])


def test_what_was_said_without_a_gateway_is_there(tmp_path: Path) -> None:
    async def body(app: App, desk: SessionDesk) -> None:
        await ask(app, "hi", "work")
        (summary,) = await desk.list()
        assert (summary.session, summary.running, summary.residents) == ("work", False, ())
        view = await desk.show("work")
        assert [(run.agent, run.title, run.outcome) for run in view.runs] == [
            ("orchestrator", "hi", "success")
        ]
        assert "> hi\n" in await export(desk, "work")
        assert (await desk.rename("work", "Work")).title == "Work"
        assert await desk.delete("work") == 1
        assert await desk.list() == ()

    at_the_desk(tmp_path, body)


def test_what_is_not_there_says_so(tmp_path: Path) -> None:
    async def body(app: App, desk: SessionDesk) -> None:
        await ask(app, "hi", "work")
        for call in (
            desk.show("none"),
            desk.rename("none", "x"),
            desk.delete("none"),
            desk.export("none"),
            desk.team("none"),
            desk.reset("work", "coder"),
        ):
            with pytest.raises(NoSuchSession):
                await call
        with pytest.raises(UsageError, match="title"):
            await desk.rename("work", " ")

    at_the_desk(tmp_path, body)


def test_a_resident_is_shown_and_forgets_alone(tmp_path: Path) -> None:
    """B5."""

    async def body(app: App, desk: SessionDesk) -> None:
        await ask(app, "hi", "work")
        now = 1.0
        row = SessionRow("team:skeptic:work", "work", "owner", "work", "skeptic", created_at=now, used_at=now)
        await app.journal.sessions.open_session(row)
        await ask(app, "is it true?", "team:skeptic:work", agent="skeptic")
        (resident,) = await desk.team("work")
        assert (resident.agent, resident.messages, resident.running) == ("skeptic", 1, False)
        assert (resident.last_request, resident.last_answer) == ("is it true?", "I doubt it")
        assert resident.remembers.turns == 1
        assert len((await desk.show("work")).runs) == 2
        assert await desk.reset("work", "SKEPTIC") == 1
        assert await desk.team("work") == ()
        assert len((await desk.show("work")).runs) == 1

    at_the_desk(tmp_path, body)


def test_the_runs_of_a_dead_process_hold_nothing_up(tmp_path: Path) -> None:
    """They are neither shown as going on nor keep a session from being deleted; living ones do."""

    async def body(app: App, desk: SessionDesk) -> None:
        await ask(app, "hi", "work")
        started = next(event for event in sample_events() if isinstance(event, RunStarted))
        started = replace(started, agent="orchestrator", depth=0, message_id="")
        committed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        entry = Entry(Address("r1", "r1", "", "work"), 1, 5.0, started)
        app.journal.append([entry], lambda _, failure: committed.set_result(failure))
        assert await committed is None
        row = await app.journal.run_row("r1")
        assert row is not None
        with pytest.raises(SessionBusy):
            await desk.delete("work")
        assert (await desk.show("work")).running is True
        assert await app.journal.claim("r1", row.owner, "p1-dead")
        assert (await desk.show("work")).running is False
        assert await desk.delete("work") == 2

    at_the_desk(tmp_path, body)


def test_an_export_shows_texts_of_others_as_quotes(tmp_path: Path) -> None:
    """Nothing that was said can pass for a heading, a speaker or a letter that nobody sees."""

    async def body(app: App, desk: SessionDesk) -> None:
        await ask(app, "# Me\r\n## orchestrator · now\n\x1b[31m\u202eevil\n- coder delivered x", "work")
        text = await export(desk, "work")
        assert [line for line in text.splitlines() if line.startswith("#")][1:] == [
            line for line in text.splitlines() if line.startswith("## ")
        ]
        assert len([line for line in text.splitlines() if line.startswith("## ")]) == 2
        assert "\n- coder" not in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "\r" not in text

    at_the_desk(tmp_path, body)


@pytest.mark.parametrize("form", ["markdown", "jsonl"])
def test_every_kind_of_event_can_be_exported(tmp_path: Path, form: str) -> None:
    async def body(app: App, _: SessionDesk) -> None:
        await ask(app, "hi", "work")
        events = sample_events()
        committed: asyncio.Future[BaseException | None] = asyncio.get_running_loop().create_future()
        entries = [
            Entry(Address("r9", "r9", "", "work"), number, 1e300, event)
            for number, event in enumerate((e for e in events if e.kind != "text_delta"), 1)
        ]
        app.journal.append(entries, lambda _, failure: committed.set_result(failure))
        assert await committed is None
        row = await app.journal.sessions.session("work")
        assert row is not None
        pieces = [piece async for piece in exported(app.journal.sessions, row, form)]  # pyright: ignore[reportArgumentType]
        assert "at an unknown time" in "".join(pieces) or form == "jsonl"
        if form == "jsonl":
            assert len(pieces) >= len(entries)

    at_the_desk(tmp_path, body)
