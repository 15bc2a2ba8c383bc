"""A process that has everything imported and forks a real child for each order, so that hundreds of
processes can be killed in a minute.

One JSON order per line on stdin, one JSON answer per line on stdout: {"code": exit code, "out": text,
"pid": of the process that it was}.
"""

import asyncio
import gc
import json
import os
import signal
import sys
import traceback
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from xclaw.agents.loader import builtin_agents
from xclaw.app import App, open_app
from xclaw.contracts.approvals import Answer
from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import ApprovalAsked, Entry
from xclaw.contracts.journal import Committed
from xclaw.contracts.usage import Usage
from xclaw.gateway.routing.rules import load_rules
from xclaw.loop.schema_checks import checker_for
from xclaw.models.prices import PriceBook
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, Settings, load_settings
from xclaw.store.journal import SqliteJournal
from xclaw.toolbox import build_toolbox

_append = SqliteJournal.append


def die_now(_signal: int, _frame: FrameType | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_after(seconds: float | None) -> None:
    if seconds is not None:
        signal.signal(signal.SIGALRM, die_now)
        signal.setitimer(signal.ITIMER_REAL, max(seconds, 1e-6))


def die_at(number: int, when: str) -> None:
    """Kill this process at its `number`-th event: before it reaches the journal, or once it is durable."""
    seen = 0

    def append(self: SqliteJournal, entries: Sequence[Entry], committed: Committed) -> None:
        nonlocal seen
        first, seen = seen, seen + len(entries)
        is_the_one = first < number <= seen
        if is_the_one and when == "before":
            os.kill(os.getpid(), signal.SIGKILL)

        def durable(stored: Sequence[Entry], error: BaseException | None) -> None:
            if is_the_one:
                os.kill(os.getpid(), signal.SIGKILL)
            committed(stored, error)

        _append(self, entries, durable)

    SqliteJournal.append = append  # the process is about to die, nothing needs to be put back


def settings_of(order: dict[str, Any]) -> Settings:
    home = Path(order["home"])
    env = {
        "XCLAW_HOME": str(home),
        "HOME": str(home),
        "OPENAI_API_KEY": "x",
        "OPENAI_BASE_URL": order.get("url", "http://127.0.0.1:9/v1"),
    }
    models = (order.get("model", "openai:fake"),)
    overrides = Overrides(models=models, allow_shell=order.get("allow_shell"))
    settings = load_settings(cwd=home, env=env, overrides=overrides)
    return replace(settings, workspace=replace(settings.workspace, durable=False))


@asynccontextmanager
async def answered(app: App, decision: str) -> AsyncGenerator[None]:
    """A person who gives every question the same answer, also one that was asked before; nobody without."""
    if not decision:
        yield
        return
    loop = asyncio.get_running_loop()
    answers: set[asyncio.Task[None]] = set()

    async def answer(approval_id: str) -> None:
        given = Answer(decision)  # pyright: ignore[reportArgumentType] - the tests send nothing else
        with suppress(UsageError):  # the process before gave it already
            await app.runs.approvals.answer(approval_id, given, by="owner")

    def note(entry: Entry) -> None:
        if isinstance(entry.event, ApprovalAsked):
            answers.add(loop.create_task(answer(entry.event.approval_id)))

    stop = app.runs.subscribe(note)
    for approval in await app.runs.approvals.pending():
        await answer(approval.approval_id)
    yield
    stop()
    if answers:
        await asyncio.wait(answers)


async def run(order: dict[str, Any]) -> str:
    async with open_app(settings_of(order)) as app, answered(app, order.get("answer", "")):
        if order["do"] == "resume":
            die_after(order.get("after_s"))
            results = [
                await (await app.runs.resume(row.run_id)).result() for row in await app.runs.interrupted()
            ]
        else:
            request = RunRequest(order["text"], "s", agent=order.get("agent", "orchestrator"))
            handle = await app.runs.start(request)
            die_after(order.get("after_s"))
            results = [await handle.result()]
        return json.dumps([[r.outcome, r.reason] for r in results])


def child(order: dict[str, Any], write_end: int) -> None:
    if order.get("number"):
        die_at(order["number"], order["when"])
    text, code = "", 0
    try:
        text = asyncio.run(run(order))
    except BaseException:  # noqa: BLE001 - the last frame of a forked process: report and exit
        text, code = traceback.format_exc(), 1
    os.write(write_end, text.encode())
    os._exit(code)


def have_ready() -> None:
    """What a process otherwise loads when it first needs it, once for all children instead of in each."""
    PriceBook({}, {"openai": "openai"}).cost_usd("openai:fake", Usage())
    load_rules()
    tools = build_toolbox(lambda _path: None, builtin_agents().roster())
    for name in tools.names():
        if tool := tools.resolve(name):
            checker_for(tool.spec.parameters)
    gc.freeze()  # so that no child copies what it only looks at


def main() -> None:
    have_ready()
    for line in sys.stdin:
        order = json.loads(line)
        read_end, write_end = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(read_end)
            child(order, write_end)
        os.close(write_end)
        with os.fdopen(read_end, "rb") as pipe:
            out = pipe.read().decode()
        _, status = os.waitpid(pid, 0)
        with suppress(BrokenPipeError):
            sys.stdout.write(
                json.dumps({"code": os.waitstatus_to_exitcode(status), "out": out, "pid": pid}) + "\n"
            )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
