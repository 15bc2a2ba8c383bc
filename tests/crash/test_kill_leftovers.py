"""`kill -9` while a command runs: what it had put into a session of its own is ended by the next process (SPEC K6)."""

import json
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kill import Zygote

DAEMON = "setsid sleep 300 </dev/null >/dev/null 2>&1 & echo $! > {home}/daemon"
KILL_XCLAW = "kill -9 $(awk '{print $4}' /proc/$PPID/stat); sleep 300"
"""Its shell is started by a leader, and that by xclaw."""
RUNNER = "---\nname: runner\ndescription: runs\ntools: shell\n---\nYou are the runner.\n"


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.stop()


def is_alive(pid: int) -> bool:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return False
    return stat.rpartition(b")")[2].split()[0] not in (b"Z", b"X")


def test_the_daemon_of_a_command_does_not_outlive_the_next_start(zygote: Zygote) -> None:
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        (home / "agents").mkdir()
        (home / "agents" / "runner.md").write_text(RUNNER)
        command = f"{DAEMON.format(home=home)}; {KILL_XCLAW}"
        call = {"name": "shell", "arguments": {"command": command}}
        script = home / "script.json"
        script.write_text(
            json.dumps([{"agent": "runner", "replies": [{"calls": [call]}, {"text": "Done."}]}])
        )
        order = {"home": place, "model": f"script:{script}", "allow_shell": True}
        code, out = zygote.do(do="run", text="go", agent="runner", **order)
        assert code == -signal.SIGKILL, out
        daemon = int((home / "daemon").read_text())
        try:
            assert is_alive(daemon)
            assert zygote.do(do="resume", **order) == (0, '[["success", ""]]')
            assert not is_alive(daemon)
        finally:
            if is_alive(daemon):
                os.kill(daemon, signal.SIGKILL)
