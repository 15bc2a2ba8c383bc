"""The process that reads a page ends with the call, however much it has said that nobody has read yet."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from xclaw.tools.web_page import markdown

TALKATIVE = """#!{python} -IS
import fcntl, os, sys
order, report = os.open({order!r}, os.O_RDONLY), os.open({report!r}, os.O_WRONLY)
fcntl.fcntl(1, fcntl.F_SETPIPE_SZ, 1 << 20)
sys.stdin.buffer.read()
os.write(report, b"%d " % os.getpid())
os.read(order, 1)
os.write(report, b"%d" % os.write(1, b"x" * 600_000))
os.read(order, 1)
"""
"""Has read its page when it first reports, and more than anybody buffers lies in its pipe at the second time."""


def test_a_cancelled_reading_does_not_wait_for_what_its_process_has_still_to_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncio up to Python 3.12 waits for a process that is dead until its pipes are read to the end."""
    order, report, program = tmp_path / "order", tmp_path / "report", tmp_path / "python"
    os.mkfifo(order)
    os.mkfifo(report)
    program.write_text(TALKATIVE.format(python=sys.executable, order=str(order), report=str(report)))
    program.chmod(0o700)
    monkeypatch.setattr(sys, "executable", str(program))

    async def main() -> int:
        reading = asyncio.get_running_loop().create_task(markdown("<p>a page</p>", "http://here/"))
        ordering = await asyncio.to_thread(os.open, order, os.O_WRONLY)
        reporting = await asyncio.to_thread(os.open, report, os.O_RDONLY)
        process = int(await asyncio.to_thread(os.read, reporting, 100))
        os.write(ordering, b"1")  # from here on the event loop reads nothing until the call is cancelled
        assert os.read(reporting, 100) == b"600000"
        reading.cancel()
        async with asyncio.timeout(20):
            await asyncio.wait([reading])
        assert reading.cancelled()
        os.close(ordering)
        os.close(reporting)
        return process

    process = asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
