"""The lock on memory files (D01, D03)."""

import logging
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from xclaw.contracts.errors import UsageError
from xclaw.memory.locking import locked

HOLD = """
import sys
from pathlib import Path
from xclaw.memory.locking import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.readline()
"""


def holder(path: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_the_lock_of_a_killed_process_is_free_and_that_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """D01."""
    process = holder(tmp_path / ".lock")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    began = time.monotonic()
    with caplog.at_level(logging.INFO), locked(tmp_path / ".lock"):
        pass
    assert time.monotonic() - began < 1.0
    assert f"the process {process.pid} ended while it held" in caplog.text


@pytest.mark.parametrize("left", ["", "4194303\n", "2019-01-01T00:00:00", "\x00" * 5000])
def test_a_lock_file_that_lies_there_keeps_nobody_out(tmp_path: Path, left: str) -> None:
    """D01: of an older version too, whatever it wrote and however old it is."""
    lock = tmp_path / ".lock"
    lock.write_text(left)
    os.utime(lock, (0, 0))
    with locked(lock, 0.0):
        pass
    assert lock.read_text() == ""


def test_a_living_holder_is_waited_for_and_then_named(tmp_path: Path) -> None:
    process = holder(tmp_path / ".lock")
    try:
        with (
            pytest.raises(
                UsageError, match=rf"locked for 0.05 s by a process that lives \(pid {process.pid}\)"
            ),
            locked(tmp_path / ".lock", 0.05),
        ):
            pass
    finally:
        process.communicate("\n")
    with locked(tmp_path / ".lock", 0.05):
        pass


def test_the_lock_is_free_after_an_error_under_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path / ".lock"):
        raise ZeroDivisionError
    with caplog.at_level(logging.INFO), locked(tmp_path / ".lock", 0.0):
        pass
    assert caplog.text == ""
