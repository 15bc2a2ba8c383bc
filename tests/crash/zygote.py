"""A process that has everything imported and forks a real child for each order, so that hundreds of
processes can be killed in a minute.

One JSON order per line on stdin, one JSON answer per line on stdout: {"code": exit code, "out": text}.
"""

import asyncio
import json
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from xclaw.app import open_app
from xclaw.contracts.events import Entry
from xclaw.contracts.journal import Committed
from xclaw.runtime.runs import RunRequest
from xclaw.settings import Overrides, Settings, load_settings
from xclaw.store.journal import SqliteJournal

_append = SqliteJournal.append


def die_now(_signal: int, _frame: FrameType | None) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


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
        "OPENAI_BASE_URL": order["url"],
    }
    settings = load_settings(cwd=home, env=env, overrides=Overrides(models=("openai:fake",)))
    return replace(settings, workspace=replace(settings.workspace, durable=False))


async def run(order: dict[str, Any]) -> str:
    async with open_app(settings_of(order)) as app:
        if order["do"] == "resume":
            results = [
                await (await app.runs.resume(row.run_id)).result() for row in await app.runs.interrupted()
            ]
        else:
            request = RunRequest(order["text"], "s")
            handle = await app.runs.start(request)
            if order.get("after_s") is not None:
                signal.signal(signal.SIGALRM, die_now)
                signal.setitimer(signal.ITIMER_REAL, max(order["after_s"], 1e-6))
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


def main() -> None:
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
            sys.stdout.write(json.dumps({"code": os.waitstatus_to_exitcode(status), "out": out}) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
