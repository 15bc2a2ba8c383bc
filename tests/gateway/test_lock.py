"""One gateway for each home, and how it is found."""

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from xclaw.contracts.errors import UsageError
from xclaw.gateway.lock import Running, find, hold

HOLDING = """
import sys
from pathlib import Path
from xclaw.contracts.errors import UsageError
from xclaw.gateway.lock import hold
try:
    with hold(Path(sys.argv[1])) as lock:
        if len(sys.argv) > 2:
            lock.announce(sys.argv[2], workspace="/w", version="9")
        print("holds", flush=True)
        sys.stdin.read()
except UsageError as error:
    print(error, flush=True)
"""


@contextmanager
def holder(home: Path, *url: str) -> Generator[subprocess.Popen[str]]:
    """Another process that is, or wants to be, the gateway."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDING, str(home), *url],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def said(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_nobody_is_found_where_nobody_was(tmp_path: Path) -> None:
    assert find(tmp_path / "new") is None
    assert list(tmp_path.iterdir()) == []


def test_a_gateway_is_found_from_its_start_to_its_end(tmp_path: Path) -> None:
    home = tmp_path / "home"
    with hold(home, clock=lambda: 12.5) as lock:
        starting = find(home)
        assert starting is not None
        assert not starting.ready
        lock.announce("http://127.0.0.1:8763", workspace="/w", version="1")
        assert find(home) == Running(os.getpid(), "http://127.0.0.1:8763", "/w", "1", 12.5)
        assert stat.S_IMODE((home / "gateway.json").stat().st_mode) == 0o600
    assert find(home) is None
    assert [path.name for path in home.iterdir()] == ["gateway.lock"]


def test_a_second_one_is_told_which_is_the_first(tmp_path: Path) -> None:
    with holder(tmp_path, "http://127.0.0.1:1") as first:
        assert said(first) == "holds"
        named = rf"http://127\.0\.0\.1:1, process {first.pid}, workspace /w"
        with pytest.raises(UsageError, match=named), hold(tmp_path):
            pass
        found = find(tmp_path)
        assert found is not None
        assert found.pid == first.pid
        first.communicate("", timeout=20)
    with hold(tmp_path):
        pass


def test_one_that_starts_meanwhile_is_not_named_after_the_one_before(tmp_path: Path) -> None:
    with holder(tmp_path) as first:
        assert said(first) == "holds"
        with pytest.raises(UsageError, match="starting or stopping"), hold(tmp_path):
            pass


def test_a_killed_one_is_gone_at_once_and_what_it_left_means_nothing(tmp_path: Path) -> None:
    """D01: its pid may be anybody's by now."""
    with holder(tmp_path, "http://127.0.0.1:1") as first:
        assert said(first) == "holds"
        first.send_signal(signal.SIGKILL)
        first.wait(20)
    left = json.loads((tmp_path / "gateway.json").read_bytes())
    (tmp_path / "gateway.json").write_text(json.dumps({**left, "pid": os.getpid()}))
    assert find(tmp_path) is None
    with hold(tmp_path) as lock:
        starting = find(tmp_path)
        assert starting is not None
        assert not starting.ready
        lock.announce("http://127.0.0.1:2", workspace="/w", version="1")
        found = find(tmp_path)
        assert found is not None
        assert found.url == "http://127.0.0.1:2"


@pytest.mark.parametrize("left", [b"", b"{", b"[1]", b"\xff", b'{"pid": "x"}'])
def test_what_was_left_damaged_is_written_anew(left: bytes, tmp_path: Path) -> None:
    (tmp_path / "gateway.json").write_bytes(left)
    assert find(tmp_path) is None
    with hold(tmp_path) as lock:
        lock.announce("http://127.0.0.1:2", workspace="/w", version="1")
        assert find(tmp_path) is not None
        (tmp_path / "gateway.json").write_bytes(left)
        with pytest.raises(UsageError, match=r"gateway\.json: damaged"):
            find(tmp_path)
    assert find(tmp_path) is None


def test_of_many_that_start_at_once_one_is_the_gateway(tmp_path: Path) -> None:
    all_tried = threading.Event()
    refused: list[str] = []
    held: list[int] = []

    def start(number: int) -> None:
        try:
            with hold(tmp_path):
                held.append(number)
                assert all_tried.wait(20)
        except UsageError as error:
            refused.append(str(error))
            if len(refused) == 7:
                all_tried.set()

    with ThreadPoolExecutor(8) as pool:
        for started in [pool.submit(start, number) for number in range(8)]:
            started.result(30)
    assert (len(held), len(refused)) == (1, 7)


def test_whoever_looks_keeps_nobody_from_being_the_gateway(tmp_path: Path) -> None:
    with hold(tmp_path):
        pass
    stop = threading.Event()

    def look() -> int:
        looked = 0
        while not stop.is_set():
            find(tmp_path)
            looked += 1
        return looked

    with ThreadPoolExecutor(2) as pool:
        looking = [pool.submit(look) for _ in range(2)]
        try:
            for _ in range(30):
                with hold(tmp_path):
                    pass
        finally:
            stop.set()
        assert all(looker.result(20) > 0 for looker in looking)


def test_a_home_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be used"), hold(tmp_path / "file"):
        pass
    assert find(tmp_path / "file") is None


def test_the_state_can_be_elsewhere(tmp_path: Path) -> None:
    state = tmp_path / "run" / "state.json"
    with hold(tmp_path / "home", state) as lock:
        lock.announce("http://127.0.0.1:2", workspace="/w", version="1")
        assert state.exists()
        found = find(tmp_path / "home", state)
        assert found is not None
        assert found.ready
    assert not state.exists()
