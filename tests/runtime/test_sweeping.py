"""What killed processes leave is swept up, and nothing else is."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

from xclaw.app import open_app
from xclaw.runtime.control import sweep_socket
from xclaw.settings import Overrides, Settings, load_settings

HOLD = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from test_sweeping import settings
from pathlib import Path
from xclaw.app import open_app

async def main():
    async with open_app(settings(Path(sys.argv[2]))) as app:
        [row] = await app.journal.owners()
        print(row.socket, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


def settings(home: Path) -> Settings:
    env = {"XCLAW_HOME": str(home), "HOME": str(home), "XCLAW_NO_LOCAL": "1"}
    return load_settings(cwd=home, env=env, overrides=Overrides())


def test_the_socket_of_a_killed_process_is_gone_after_the_next_start(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLD, str(Path(__file__).parent), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        socket = Path(process.stdout.readline().strip())
        assert socket.exists()
        os.kill(process.pid, signal.SIGKILL)

    async def main() -> None:
        async with asyncio.timeout(10), open_app(settings(tmp_path)) as app:
            [row] = await app.journal.owners()
            assert Path(row.socket).exists()
            assert row.socket != str(socket)

    asyncio.run(main())
    assert not socket.parent.exists()


def test_a_path_that_is_no_socket_of_ours_is_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "control"
    other.write_text("mine")
    full = tmp_path / "xclaw-1"
    full.mkdir()
    (full / "control").touch()
    (full / "letter").write_text("mine")
    for path in ("", str(other), str(full / "letter"), str(full / "control")):
        sweep_socket(path)
    assert other.exists()
    assert (full / "letter").exists()
