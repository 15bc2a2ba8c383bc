"""Kill, or cancel, a tree of 50 agents of every kind at random instants, and hold what is left against what was
promised (SPEC G1, K3, K6):

    python -m tests.crash.big_tree --kills 200 --seed 1
    python -m tests.crash.big_tree --cancels 20 --seed 1

Each time it is one process of the tree: xclaw's own, a forked worker, its keeper, a user's program or a daemon
of that. A killed xclaw is taken up by a new one, and may be killed again while that goes on. Prints what
happened as JSON; ends with code 1 if anything was not as promised, and leaves those trees' homes in place.
"""

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from tests.crash.big_tree_checks import (
    Fault,
    answered,
    check_gone,
    check_whole,
    expect,
    parent_of,
    processes_of,
    settled,
)
from tests.crash.big_tree_grove import Grove, Grown, Tally
from tests.crash.big_tree_job import rules
from tests.crash.test_kill import Provider
from tests.crash.zygote import have_ready

LATENCY_MS = 20
POLL_S = 0.01
IN_FLIGHT = 24
"""Calls that one kill can lose: those of at most 8 workers and the root under way, and as many answered and
not yet durable."""


def kind_of(pid: int, command: str) -> str:
    """A keeper is the child of the process that its command names; the worker that it forked is not."""
    words = command.split()
    if "xclaw.spawn.forked_keeper" in words:
        return (
            "keeper"
            if str(parent_of(pid)) == words[words.index("xclaw.spawn.forked_keeper") + 2]
            else "worker"
        )
    return "program" if "program.py" in command else "daemon" if words[:1] == ["sleep"] else "other"


class Killing:
    """Kills until it has killed often enough."""

    def __init__(self, tally: Tally, choose: random.Random, kills: int, again: float) -> None:
        self.tally = tally
        self.choose = choose
        self.kills = kills
        self.again = again
        self.whole_s = 0.0
        """How long a tree takes when nobody interferes, here and now."""

    def tree(self, grove: Grove) -> None:
        """One tree to its end, hit once or more."""
        grown, lost, hit = grove.run(), 0, Counter[str]()
        while self._more(hit) and not grown.ends_within(self.choose.uniform(0, self.whole_s)):
            victim, kind = self._victim(grove, grown)
            with suppress(ProcessLookupError):
                os.kill(victim, signal.SIGKILL)
            hit[kind] += 1
            self.tally.kills[kind] += 1
            if kind != "xclaw":
                continue
            code, said = grown.end()
            expect(code == -signal.SIGKILL, f"{code}: {said}")
            entries, now_lost = grove.after_main_is_dead()
            self._note_lost(now_lost - lost, hit)
            lost = now_lost
            if not entries:
                self.tally.ends["never began"] += 1
                return
            grown = grove.resume()
        code, said = grown.end()
        expect(code == 0, f"hit {hit}: {said}")
        entries = grove.check_ended()
        expect(all(result == ["success", ""] for result in said), f"hit {hit}: {said}")
        unknown = grove.after_main_is_dead()[1] - lost
        if set(hit) <= {"xclaw"}:
            check_whole(entries)
            expect(
                unknown == 0,
                f"hit {hit}: {unknown} requests that nobody recorded, {answered(entries)} answers",
            )
        else:
            expect(
                -IN_FLIGHT * hit.total() <= unknown <= 0, f"hit {hit}: {unknown} requests are not recorded"
            )

    def _more(self, hit: Counter[str]) -> bool:
        if not self.whole_s or self.tally.kills.total() >= self.kills:
            return False
        return not hit or self.choose.random() < self.again

    def _note_lost(self, lost: int, hit: Counter[str]) -> None:
        low = 0 if set(hit) <= {"xclaw"} else -IN_FLIGHT
        expect(low <= lost <= IN_FLIGHT, f"hit {hit}: {lost} requests are not in the journal")
        self.tally.most_lost = max(self.tally.most_lost, lost)

    def _victim(self, grove: Grove, grown: Grown) -> tuple[int, str]:
        others = {pid: kind_of(pid, command) for pid, command in processes_of(grove.home).items()}
        kind = self.choose.choice(["xclaw", "xclaw", *sorted(set(others.values()))])
        if kind == "xclaw":
            return grown.pid, kind
        return self.choose.choice(sorted(pid for pid, each in others.items() if each == kind)), kind


class Cancelling:
    """Cancels the root, in its own process and from another one by turns."""

    def __init__(self, tally: Tally, choose: random.Random) -> None:
        self.tally = tally
        self.choose = choose
        self.whole_s = 0.0

    def tree(self, grove: Grove) -> None:
        kind = "in process" if self.tally.cancels.total() % 2 else "from another process"
        after_s = self.choose.uniform(0, self.whole_s)
        said = (
            _cancelled_inside(grove, after_s) if kind == "in process" else _cancelled_outside(grove, after_s)
        )
        if said is None:
            return
        seconds, requests, ends = said
        self.tally.cancels[kind] += 1
        self.tally.slowest_confirm_s = max(self.tally.slowest_confirm_s, seconds)
        expect(not any(end["late"] for end in ends), f"{kind}: late: {ends}")
        outcomes = {end["outcome"] for end in ends}
        expect(outcomes <= {"cancelled", "success"}, f"{kind}: {outcomes}")
        entries = grove.check_ended(requests_after=requests)
        pings = int(kind == "in process")
        unknown = requests - pings - settled(entries).calls
        expect(unknown <= 0, f"{kind}: {unknown} requests that nobody recorded")
        runs = {entry.address.run_id for entry in entries}
        expect({end["run_id"] for end in ends} == runs, f"{kind}: {len(ends)} of {len(runs)} confirmed")


def _cancelled_inside(grove: Grove, after_s: float) -> Any:
    code, said = grove.cancel_itself(after_s).end()
    expect(code == 0, f"cancelled in process: {said}")
    return said


def _cancelled_outside(grove: Grove, after_s: float) -> Any:
    grown = grove.run()
    if grown.ends_within(after_s):
        grown.end()
        return None
    while not (entries := grove.entries()):
        grown.ends_within(POLL_S)
    code, said = grove.cancel_from_outside(entries[0].address.root_id).end()
    expect(code == 0, f"cancelled from outside: {said}")
    ended, result = grown.end()
    expect(ended == 0, f"cancelled from outside: {result}")
    had_ended = [end["outcome"] for end in said[2]] == ["success"]
    return None if had_ended else said


class Study:
    """Tree after tree, each in a home of its own. A fault is noted, and its home kept."""

    def __init__(self, place: Path, tally: Tally) -> None:
        self.tally = tally
        self._place = place
        self._provider = Provider(place, rules(), latency_ms=LATENCY_MS)

    def tree(self, work: Callable[[Grove], None]) -> float:
        """Seconds that it took."""
        began = time.monotonic()
        home = self._place / f"home{self.tally.trees}"
        self.tally.trees += 1
        grove = Grove(home, self._provider, self.tally)
        try:
            work(grove)
        except Fault as fault:
            self.tally.faults.append(f"{home}: {fault}")
            sys.stderr.write(f"{self.tally.faults[-1]}\n")
            grove.abandon()
        else:
            shutil.rmtree(home)
        tally = self.tally
        hit = f"{tally.kills.total()} kills, {tally.cancels.total()} cancels"
        sys.stderr.write(f"{hit}, {tally.trees} trees, {len(tally.faults)} faults\n")
        return time.monotonic() - began

    def end(self) -> None:
        self._provider.stop()
        for number in range(self.tally.trees):
            check_gone(self._place / f"home{number}")


def main(out: TextIO) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.crash.big_tree")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--cancels", type=int, default=0)
    parser.add_argument("--again", type=float, default=0.35, help="how often a tree is hit once more")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(1 << 30))
    options = parser.parse_args()
    have_ready()
    place = Path(tempfile.mkdtemp(prefix="grove-"))
    tally, choose = Tally(options.seed), random.Random(options.seed)
    study = Study(place, tally)
    killing = Killing(tally, choose, options.kills, options.again)
    cancelling = Cancelling(tally, choose)
    killing.whole_s = cancelling.whole_s = study.tree(killing.tree)
    while tally.kills.total() < options.kills:
        study.tree(killing.tree)
    while tally.cancels.total() < options.cancels:
        study.tree(cancelling.tree)
    study.end()
    tally.load = os.getloadavg()
    out.write(json.dumps({name: getattr(tally, name) for name in Tally.__slots__}) + "\n")
    if not tally.faults:
        shutil.rmtree(place)
    return int(bool(tally.faults))


if __name__ == "__main__":
    sys.exit(main(sys.stdout))
