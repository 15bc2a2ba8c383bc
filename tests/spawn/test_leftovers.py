"""What a killed keeper leaves: daemons of a worker's script, which only a mark in their environment tells (C02)."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from forked_scene import WAIT_S, Wishes, forked_scene, until
from script_scene import script

from xclaw.app import open_app
from xclaw.contracts.events import Entry, TextDelta
from xclaw.contracts.models import ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.settings import load_settings
from xclaw.spawn.leftovers import MARK, end_marked
from xclaw.testing.script_files import ScriptedReply

DAEMON = """
if (child := os.fork()) == 0:
    os.setsid()
    if (daemon := os.fork()) == 0:
        os.execvp("sleep", ["sleep", "300"])
    open(sys.argv[1], "w").write(str(daemon))
    os._exit(0)
os.waitpid(child, 0)
xclaw.say("it runs")
xclaw.ask("and now?")
"""


DEAD_OWNER = """
import asyncio, os, sys
from xclaw.store.journal import SqliteJournal
from xclaw.store.settings import StoreSettings

async def main():
    journal = await SqliteJournal.open(StoreSettings(sys.argv[1]))
    await journal.register_owner("p1-feedbeef", os.getpid(), "")
    os._exit(0)

asyncio.run(main())
"""


async def waits(request: ModelRequest) -> str | ScriptedReply:
    return await asyncio.get_running_loop().create_future()


def is_alive(pid: int) -> bool:
    """Whether it is there and no zombie, which whoever adopted it may not have reaped yet."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def sleeper(mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sleep", "300"], env={"PATH": os.environ["PATH"], MARK: mark}, start_new_session=True
    )


def test_a_daemon_of_a_script_is_gone_although_its_keeper_was_killed(tmp_path: Path) -> None:
    async def main() -> None:
        agents = [script(tmp_path, DAEMON, str(tmp_path / "daemon"))]
        async with forked_scene(tmp_path, waits, Wishes(agents)) as scene, asyncio.timeout(WAIT_S):
            began = asyncio.Event()

            def note(entry: Entry) -> None:
                if isinstance(entry.event, TextDelta):
                    began.set()

            scene.runs.subscribe(note)
            handle = await scene.runs.start(RunRequest("go", "s", "mine"))
            await began.wait()
            daemon = int((tmp_path / "daemon").read_text())
            assert is_alive(daemon)
            os.kill(scene.links[-1].pid, signal.SIGKILL)
            result = await handle.result()
            assert result.outcome == "error"
            assert "SIGKILL" in result.reason
            await until(lambda: not is_alive(daemon))

    asyncio.run(main())


def test_the_next_process_ends_what_is_left_of_one_that_was_killed_with_its_keepers(tmp_path: Path) -> None:
    """Nobody of the old one lives who could have; a living one's workers are left alone."""
    env = {"XCLAW_HOME": str(tmp_path), "HOME": str(tmp_path)}
    settings = load_settings(cwd=tmp_path, env=env)
    Path(settings.workspace.root).mkdir(parents=True)
    subprocess.run([sys.executable, "-c", DEAD_OWNER, settings.store.path], check=True)

    async def main() -> None:
        left, other = sleeper("p1-feedbeef/0a/0b"), sleeper("p1-feedbeef2/0a")
        try:
            async with open_app(settings):
                assert left.wait(10) == -signal.SIGKILL
                assert other.poll() is None
        finally:
            left.kill()
            other.kill()
            left.wait()
            other.wait()

    asyncio.run(main())


def test_ending_what_is_marked_spares_everybody_else() -> None:
    first, below, other = sleeper("p1/a"), sleeper("p1/a/b"), sleeper("p1/ab")
    try:
        assert end_marked("p1/a") == 2
        assert (first.wait(10), below.wait(10), other.poll()) == (-signal.SIGKILL, -signal.SIGKILL, None)
        assert end_marked("p1/a") == 0
    finally:
        for process in (first, below, other):
            process.kill()
            process.wait()
