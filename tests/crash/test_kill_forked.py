"""`kill -9` of the runtime while forked workers drive runs: no process survives it, and a new one goes on
from what was journaled (SPEC G3, K6)."""

import os
import random
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from test_kill import RULES, Provider, Zygote, check_after_kill, check_tree, entries_in, job_seconds
from waiting import await_one

KEEPER = b"xclaw.spawn.forked_keeper"
GONE_S = 10.0
FORKED = "---\nname: {0}\ndescription: works elsewhere\nisolation: forked\n---\nAnother agent called you.\n"


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Provider]:
    provider = Provider(tmp_path_factory.mktemp("provider"), RULES)
    yield provider
    provider.stop()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    zygote = Zygote()
    yield zygote
    zygote.stop()


def order_for(home: Path, provider: Provider, **more: object) -> dict[str, Any]:
    """Two of the three workers are forked: one that is delegated to, one in the background."""
    (home / "agents").mkdir(exist_ok=True)
    for name in ("coder", "reviewer"):
        (home / "agents" / f"{name}.md").write_text(FORKED.format(name))
    return {"text": "Write three letters", "home": str(home), "url": provider.url, **more}


def workers_of(parent: int) -> set[int]:
    """Keepers and workers that a runtime process started: they carry its id in their command line."""
    found: set[int] = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
                state = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0]
            except OSError:
                continue
            if KEEPER in words and str(parent).encode() in words and state != b"Z":
                found.add(int(entry.name))
    return found


def check_gone(parent: int) -> None:
    until = time.monotonic() + GONE_S
    while alive := workers_of(parent):
        assert time.monotonic() < until, f"processes {alive} outlived {parent}"
        await_one(alive)


@pytest.mark.timeout(600)
def test_a_runtime_that_is_killed_takes_its_workers_along_and_is_gone_on_with(
    zygote: Zygote, provider: Provider
) -> None:
    seed = int(os.environ.get("XCLAW_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    instants = random.Random(seed)
    with tempfile.TemporaryDirectory() as home:
        assert zygote.do(do="run", **order_for(Path(home), provider)) == (0, '[["success", ""]]')
        entries = entries_in(Path(home))
        check_tree(entries)
        check_gone(zygote.last_pid)
    outcomes: Counter[str] = Counter()
    for number in sorted(instants.sample(range(1, len(entries)), 8)):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            when = instants.choice(["before", "after"])
            code, out = zygote.do(do="run", number=number, when=when, **order_for(home, provider))
            killed = zygote.last_pid
            assert code == -signal.SIGKILL, f"seed {seed}, event {number}: {out}"
            check_gone(killed)
            outcomes[check_after_kill(zygote, provider, home)] += 1
            check_gone(zygote.last_pid)
    assert outcomes["resumed"] > 3, f"seed {seed}: {outcomes}"


@pytest.mark.timeout(600)
def test_a_runtime_that_is_killed_at_random_instants_is_gone_on_with(
    zygote: Zygote, provider: Provider
) -> None:
    seed = int(os.environ.get("XCLAW_TEST_SEED", "0")) or random.SystemRandom().randrange(1 << 30)
    instants = random.Random(seed)
    whole_s = 20 * job_seconds(zygote, provider)
    for _ in range(5):
        with tempfile.TemporaryDirectory() as place:
            home = Path(place)
            order = order_for(home, provider, after_s=instants.uniform(0, whole_s))
            code, out = zygote.do(do="run", **order)
            assert code in (0, -signal.SIGKILL), f"seed {seed}: {out}"
            check_gone(zygote.last_pid)
            if code:
                check_after_kill(zygote, provider, home)
