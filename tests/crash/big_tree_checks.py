"""What has to hold of a tree that was killed or cancelled, by its journal, its provider, /proc and its files."""

import os
import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from tests.crash.big_tree_job import AGENTS, part_of
from tests.crash.waiting import await_one

from xclaw.contracts.events import (
    ArtifactDelivered,
    AttemptFailed,
    ChildEnded,
    ChildSpawned,
    Compacted,
    Entry,
    MailSent,
    MessageAdded,
    ModelAnswered,
    RunEnded,
    RunStarted,
)
from xclaw.contracts.results import Outcome, Result
from xclaw.contracts.usage import Spend, spend_of_call
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings

GONE_S = 15.0
"""How long a process may take to disappear on a busy machine; a keeper that works takes milliseconds."""


class Fault(Exception):
    """Something that was promised does not hold."""


def expect(holds: bool, what: str) -> None:
    if not holds:
        raise Fault(what)


def settled(entries: Iterable[Entry]) -> Spend:
    """Every model call that the journal has, also those that failed."""
    total = Spend()
    for entry in entries:
        match entry.event:
            case ModelAnswered() | AttemptFailed():
                total += spend_of_call(entry.event.usage, entry.event.cost_usd)
            case Compacted():
                raise Fault("nothing here is long enough to be compacted")
            case _:
                pass
    return total


def answered(entries: Iterable[Entry]) -> int:
    return sum(isinstance(entry.event, ModelAnswered) for entry in entries)


def check_whole(entries: list[Entry]) -> None:
    """Every agent of the tree did its part, and no call was made twice."""
    runs = by_run(entries)
    expect(len(runs) == AGENTS, f"{len(runs)} runs instead of {AGENTS}")
    for run_id, own in runs.items():
        started = own[0].event
        assert isinstance(started, RunStarted)
        part, calls = part_of(started), answered(own)
        expect(calls in part.calls, f"{run_id} ({part}) has {calls} answers")
    failed = [entry.event for entry in entries if isinstance(entry.event, AttemptFailed)]
    expect(not failed, f"calls failed: {failed[:3]}")
    outcomes = {entry.event.outcome for entry in entries if isinstance(entry.event, RunEnded)}
    expect(outcomes == {"success"}, f"outcomes {outcomes}")


def check_journal(entries: list[Entry]) -> None:
    """Holds of every tree that has ended, however: ends, results, mail, accounts, numbers."""
    runs = by_run(entries)
    ends: dict[str, RunEnded] = {}
    for run_id, own in runs.items():
        expect([e.seq for e in own] == list(range(1, len(own) + 1)), f"{run_id}: numbers with a gap")
        expect(isinstance(own[0].event, RunStarted), f"{run_id} begins with {own[0].event.kind}")
        found = [entry.event for entry in own if isinstance(entry.event, RunEnded)]
        expect(len(found) == 1, f"{run_id} ({_agent(own)}) has {len(found)} ends")
        ends[run_id] = found[0]
        expect(found[0].outcome in get_args(Outcome), f"{run_id} ended as {found[0].outcome!r}")
        stated = found[0].outcome == "success" or bool(found[0].result.reason)
        expect(stated, f"{run_id} ended as {found[0].outcome} without a reason")
    _check_results(entries, ends)
    _check_mail(entries)
    _check_accounts(runs, ends)


def _check_results(entries: list[Entry], ends: dict[str, RunEnded]) -> None:
    """Each child was started once and its result taken once, as it was."""
    spawned = Counter(e.event.child_run_id for e in entries if isinstance(e.event, ChildSpawned))
    taken: dict[str, list[Result]] = {}
    for entry in entries:
        if isinstance(entry.event, ChildEnded):
            taken.setdefault(entry.event.child_run_id, []).append(entry.event.result)
    expect(set(spawned.values()) <= {1}, f"started twice: {spawned.most_common(3)}")
    lost = {run_id for run_id in spawned if len(taken.get(run_id, [])) != 1}
    told = {run_id: len(taken.get(run_id, [])) for run_id in lost}
    expect(not lost, f"results lost or doubled: {told}, ended as {[ends.get(run_id) for run_id in lost][:2]}")
    for run_id, (result,) in taken.items():
        end = ends.get(run_id)
        expect(end is not None or result.spend.calls == 0, f"{run_id} has a result and no end")
        expect(end is None or end.result.outcome == result.outcome, f"{run_id}: {result} is not {end}")
        expect(end is None or end.result.spend == result.spend, f"{run_id}: {result} is not {end}")
    orphans = {entry.address.run_id for entry in entries if entry.address.parent_id} - set(spawned)
    expect(not orphans, f"runs that nobody started: {orphans}")


def _check_mail(entries: list[Entry]) -> None:
    read = Counter(
        e.event.message_id for e in entries if isinstance(e.event, MessageAdded) and e.event.message_id
    )
    expect(set(read.values()) <= {1}, f"mail was read twice: {read}")
    sent = Counter(e.event.mail_id for e in entries if isinstance(e.event, MailSent))
    expect(set(sent.values()) <= {1}, f"mail was sent twice: {sent}")


def _check_accounts(runs: dict[str, list[Entry]], ends: dict[str, RunEnded]) -> None:
    """What each run says that it and those below it used is what their calls used."""
    parents = {run_id: own[0].address.parent_id for run_id, own in runs.items()}
    below: dict[str, Spend] = dict.fromkeys(runs, Spend())
    for run_id, own in runs.items():
        spend, above = settled(own), run_id
        while above:
            below[above] += spend
            above = parents[above]
    for run_id, spend in below.items():
        said = ends[run_id].result.spend
        expect(
            same_spend(said, spend),
            f"{run_id} ({_agent(runs[run_id])}, {ends[run_id].outcome}) says {said}; its calls say {spend}",
        )


def same_spend(said: Spend, spend: Spend) -> bool:
    """To a thousandth of a cent: floats are added in another order."""
    same_usage = said.usage.total_tokens == spend.usage.total_tokens
    same_calls = (said.calls, said.unpriced_calls) == (spend.calls, spend.unpriced_calls)
    return same_usage and same_calls and abs(said.known_usd - spend.known_usd) < 1e-5


def check_files(entries: list[Entry], root: Path) -> None:
    """Everything that was reported as delivered is there, as it was."""
    workspaces = LocalWorkspaces(WorkspaceSettings(str(root)))
    for entry in entries:
        if isinstance(entry.event, ArtifactDelivered):
            pointer = entry.event.pointer
            expect(workspaces.find(pointer.path) == pointer, f"{pointer.path} is not what was delivered")


def processes_of(home: Path) -> dict[int, str]:
    """Every process, however far it went, that was born under `home`: its environment says so. Zombies
    that their parent has not reaped are none any more."""
    mark = b"HOME=" + os.fsencode(home) + b"\0"
    found: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            if mark in (entry / "environ").read_bytes():
                found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
    return found


def parent_of(pid: int) -> int:
    """0 if there is no such process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return 0
    return int(stat.rpartition(b")")[2].split()[1])


def check_gone(home: Path) -> float:
    """Seconds until no process of `home` was left."""
    began = time.monotonic()
    while alive := processes_of(home):
        expect(time.monotonic() < began + GONE_S, f"processes outlived their tree: {alive}")
        await_one(alive)
    return time.monotonic() - began


def by_run(entries: Iterable[Entry]) -> dict[str, list[Entry]]:
    runs: dict[str, list[Entry]] = {}
    for entry in entries:
        runs.setdefault(entry.address.run_id, []).append(entry)
    return runs


def _agent(own: list[Entry]) -> str:
    event = own[0].event
    return event.agent if isinstance(event, RunStarted) else "?"
