"""What the tests of the command share: no gateway outlives its test."""

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from xclaw.gateway.lock import find

ENDS_WITHIN_S = 30.0
STARTING = 0


@pytest.fixture(autouse=True)
def gateways_end(tmp_path: Path) -> Iterator[None]:
    """Ends, by its process id, the gateway that a chat may have started in the test's home."""
    yield
    for lock in tmp_path.rglob("gateway.lock"):
        _end_gateway(lock.parent)


def _end_gateway(home: Path) -> None:
    deadline = time.monotonic() + ENDS_WITHIN_S
    told = STARTING
    while (running := find(home)) is not None:
        if running.pid not in (STARTING, told):
            told = running.pid
            os.kill(told, signal.SIGTERM)
        assert time.monotonic() < deadline, f"the gateway of {home} does not end"
        time.sleep(0.02)
