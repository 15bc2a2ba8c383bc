"""`python -m xclaw.worker FD`: drive the run that the runtime at the other end of the line names."""

import asyncio
import os
import socket
import sys

from xclaw.contracts.events import Entry
from xclaw.loop.loop import run_loop
from xclaw.loop.parts import Ending
from xclaw.runtime.assembly import Live
from xclaw.runtime.collector import collect_less_often
from xclaw.runtime.driver import Driver
from xclaw.runtime.scopes import enter_scope
from xclaw.runtime.wire import WIRE_VERSION, Begin, Ended, Past, Steer, Stop
from xclaw.spawn.forked_process import MAX_LINE
from xclaw.worker.composition import Told, compose
from xclaw.worker.line import RuntimeLine
from xclaw.worker.script_process import run_script


async def serve(descriptor: int) -> int:
    """Drive the run to its end and say how it ended; answers the exit code."""
    connection = socket.socket(fileno=descriptor)
    connection.setblocking(False)
    os.set_inheritable(descriptor, False)
    reader, writer = await asyncio.open_unix_connection(sock=connection, limit=MAX_LINE)
    line = RuntimeLine(reader, writer)
    told = await _told(line)
    if told is None or told.begin.version != WIRE_VERSION:
        sys.stderr.write("the runtime at the other end speaks another version, or none\n")
        return 2
    driver, live = compose(line, told, dict(os.environ))
    await _Worker(line, driver, live, told.begin).work()
    return 0


async def _told(line: RuntimeLine) -> Told | None:
    own: list[Entry] = []
    below: list[Entry] = []
    while (said := await line.receive()) is not None:
        match said:
            case Past():
                (own if said.own else below).append(said.entry.entry())
            case Begin():
                return Told(said, own, below)
            case _:
                break
    return None


class _Worker:
    """The life of one worker."""

    def __init__(self, line: RuntimeLine, driver: Driver, live: Live, begin: Begin) -> None:
        self._line = line
        self._driver = driver
        self._live = live
        self._begin = begin
        self._stopping: set[asyncio.Task[object]] = set()

    async def work(self) -> None:
        line, live, driver = self._line, self._live, self._driver
        enter_scope(driver.services, driver.tree, live.node)
        loop = asyncio.get_running_loop()
        driving = loop.create_task(self._drive())
        line.on_steer = self._steer
        line.on_stop = lambda stop: self._stop(stop, driving)
        listening = loop.create_task(line.listen())
        await asyncio.wait([driving, listening], return_when=asyncio.FIRST_COMPLETED)
        if not driving.done():  # the runtime is gone, and whoever takes the tree up starts from the journal
            os._exit(1)
        ending = driving.result()
        line.send(
            Ended(
                outcome=ending.outcome,
                text=ending.text,
                reason=ending.reason,
                summary_data=ending.summary_data,
                pointers=ending.pointers,
                structured=ending.structured,
                unfinished=live.parts.unfinished,
            )
        )
        await line.drain()

    async def _drive(self) -> Ending:
        live, driver = self._live, self._driver
        if self._begin.resumed:
            live.children.reattach()
        script = self._begin.script
        loop = (lambda: run_script(live, script)) if script else (lambda: run_loop(live.parts))
        ending = await driver.run(live, loop)
        await live.children.end_all(driver.tree.cancelled or f"its parent ended: {ending.outcome}")
        await live.node.log.durable()
        return ending

    def _steer(self, steer: Steer) -> None:
        self._live.children.steer(steer.message)

    def _stop(self, stop: Stop, driving: asyncio.Task[Ending]) -> None:
        tree = self._driver.tree
        if stop.run == self._live.node.run_id:
            tree.cancelled = tree.cancelled or stop.reason
            driving.cancel(stop.reason)
        for node in tree.below(stop.run):
            if node.child is not None and node.result is None:
                task: asyncio.Task[object] = asyncio.get_running_loop().create_task(
                    node.child.cancel(stop.reason)
                )
                self._stopping.add(task)
                task.add_done_callback(self._stopping.discard)


def main() -> None:
    collect_less_often()
    sys.exit(asyncio.run(serve(int(sys.argv[1]))))


if __name__ == "__main__":
    main()
