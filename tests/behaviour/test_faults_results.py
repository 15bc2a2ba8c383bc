"""Faults of classes 09, 10 and 11 through the whole runtime: results, what they cost, files."""

import json
from pathlib import Path

import pytest
from harness import against_provider, ask
from wire import DIALECTS, Body, Cast, act, content, form, messages, outputs, play, spoken

from xclaw.app import App
from xclaw.contracts.events import AttemptFailed, ChildEnded, Compacted, ModelAnswered
from xclaw.contracts.usage import Spend, spend_of_call
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import DONE, Calls, Cut, Raw, Reply, Status, Text, delta, usage_chunk


def hand(agent: str, task: str) -> tuple[str, object]:
    return ("delegate", {"agent": agent, "task": task})


FILTERED = Raw(delta(""), delta(finish="content_filter"), DONE)
FAILURES: list[tuple[list[Reply], str]] = [
    ([Status(500)], "500"),
    ([Text("")], "empty response"),
    ([Raw(DONE)], "no finish reason"),
    ([Raw()], "before it began"),
    ([FILTERED], "content filter"),
    ([Text("I was about to", finish="content_filter")], "content filter"),
    ([Text("half a", finish="length")], "output limit"),
    ([Text("Half an answer", finish=None)], "no finish reason"),
    ([Raw(delta("half"), Cut())], "fake"),
    ([form("", "success")], "summary_data is empty"),
    ([form(None, "success")], "summary_data is empty"),
    ([form({"why": "could not"}, "error")], "reported an error"),
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(("replies", "reason"), FAILURES)
def test_a_worker_that_did_not_do_it_is_never_reported_as_a_success(
    tmp_path: Path, replies: list[Reply], reason: str, dialect: str
) -> None:
    """R01, S02, S11"""
    roles = {"TASK": replies, "START": [act(dialect, hand("coder", "TASK: say hello")), Text("it failed")]}
    played = play(tmp_path, roles, dialect=dialect)
    told = outputs(played.asked["START"][1])[0]
    record = json.loads(told[told.index("{") : told.rindex("}") + 1])
    if record["outcome"] == "completed_unverified":
        assert record["structured"] is False
    else:
        assert record["status"] == "error"
    assert reason in record["reason"]
    [ended] = played.seen.events(ChildEnded)
    assert ended.result.outcome != "success"


CLAIMS: list[object] = [
    ["report.md"],
    {"report": "report.md"},
    {"report": "/etc/passwd"},
    {"report": "."},
    {"report": "{{delivery}}"},
    {"report": "{{delivery}}/../../../report.md"},
    {"report": "link.md"},
    {"report": "private.txt"},
    {"report": 7},
    {"report": {"a": [1]}},
    [None],
    {"report": "a\x00b"},
    {"report": "x" * 100_000},
]


@pytest.mark.parametrize("claim", CLAIMS)
def test_a_pointer_to_nothing_is_refused_and_never_handed_up(tmp_path: Path, claim: object) -> None:
    """R02: missing, outside, a directory, a link, not delivered; and other types."""
    prepared = act(
        "native",
        ("shell", {"command": "ln -s /etc/passwd link.md; echo x > private.txt"}),
    )

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK" not in first:
            return (
                Text("it failed") if outputs(body) else act("native", hand("coder", "TASK: write a report"))
            )
        delivery = first.split("[Shared delivery dir: ")[1].split("]")[0]
        if not outputs(body):
            return prepared
        return form("done", pointers=json.loads(json.dumps(claim).replace("{{delivery}}", delivery)))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        [ended] = seen.events(ChildEnded)
        assert ended.result.pointers == {}
        assert ended.result.outcome != "success"
        assert ended.result.reason

    against_provider(tmp_path, scenario, allow_shell=True)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_artifact_of_another_worker_cannot_be_claimed(tmp_path: Path, dialect: str) -> None:
    """R02: only what a run delivered, or was handed, is its result."""
    stolen: list[str] = []

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK-A" in first:
            return form("A", pointers={"a": "a.txt"}) if outputs(body) else act(dialect, deliver)
        if "TASK-B" in first:
            return form("B", pointers={"mine": stolen[0]})
        told = outputs(body)
        if len(told) == 1:
            stolen.append(next(str(path) for path in tmp_path.rglob("a.txt")))
        return (
            [act(dialect, hand("coder", "TASK-A: write a")), act(dialect, hand("writer", "TASK-B: write b"))][
                len(told)
            ]
            if len(told) < 2
            else Text("done")
        )

    deliver = ("deliver", {"path": "a.txt", "content": "A"})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        first, second = seen.events(ChildEnded)
        assert [Path(p.path).name for p in first.result.pointers.values()] == ["a.txt"]
        assert second.result.pointers == {}
        assert second.result.outcome != "success"

    against_provider(tmp_path, scenario, dialect=dialect)


def test_an_artifact_that_was_changed_after_its_delivery_is_no_evidence(tmp_path: Path) -> None:
    """R02: pointers are hashed again when the result is taken."""

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK" not in first:
            return Text("done") if outputs(body) else act("native", hand("coder", "TASK: write a report"))
        if not outputs(body):
            return act("native", ("deliver", {"path": "a.txt", "content": "A"}))
        for path in tmp_path.rglob("a.txt"):
            path.chmod(0o600)
            path.write_text("B")
        return form("done", pointers={"a": "a.txt"})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        [ended] = (await ask(app, "START")).events(ChildEnded)
        assert ended.result.outcome != "success"

    against_provider(tmp_path, scenario)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_parallel_workers_deliver_under_one_name_and_nothing_is_overwritten(
    tmp_path: Path, dialect: str
) -> None:
    """F08"""

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK" not in first:
            tasks = (hand("coder", f"TASK-{n}: write the report") for n in range(4))
            return Text("done") if outputs(body) else act(dialect, *tasks)
        number = first.split("TASK-")[1][0]
        if not outputs(body):
            return act(dialect, ("deliver", {"path": "report.md", "content": f"text {number}"}))
        return form(number, pointers={"report": "report.md"})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        ended = seen.events(ChildEnded)
        assert [event.result.outcome for event in ended] == ["success"] * 4
        found = {str(e.result.summary_data): Path(p.path) for e in ended for p in e.result.pointers.values()}
        assert len(set(found.values())) == 4
        assert {number: path.read_text() for number, path in found.items()} == {
            str(n): f"text {n}" for n in range(4)
        }

    against_provider(tmp_path, scenario, dialect=dialect)


NAMES = [
    "../../boot.sh",
    "/etc/cron.d/x",
    "..",
    "",
    ".",
    "CON",
    "a\x00b",
    "x" * 300,
    "a/../../../b",
    "~/.bashrc",
    "C:\\x",
]


@pytest.mark.parametrize("session", ["../../../tmp/x", "a/b", "", ".", "x\x00y", "n" * 300, "规划"])
def test_no_name_leaves_the_home(tmp_path: Path, session: str) -> None:
    """F04: session ids and delivered names."""
    home = tmp_path / "a" / "b" / "home"
    calls = act("native", *(("deliver", {"path": name, "content": "x"}) for name in NAMES))
    troupe = Cast({"START": [calls, Text("ok")]})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        assert (await ask(app, "START", session)).result.text == "ok"

    against_provider(home, scenario)
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["b"]
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["home"]
    assert not list(tmp_path.rglob("boot.sh")) or all(
        home in path.parents for path in tmp_path.rglob("boot.sh")
    )


def test_tokens_of_all_workers_are_in_the_total_once(tmp_path: Path) -> None:
    """U01: own usage of each, and the sum of all, agree everywhere."""
    roles: dict[str, list[Reply]] = {
        "TASK-B": [Text(form().text, usage=(100, 1))],
        "TASK-A": [
            Calls(("c", "list_dir", "{}"), usage=(7, 3)),
            Calls(("c", "delegate", json.dumps({"agent": "coder", "task": "TASK-B: say b"})), usage=(7, 3)),
            Text(form().text, usage=(7, 3)),
        ],
        "START": [
            Calls(("c", "delegate", json.dumps({"agent": "lead", "task": "TASK-A: say a"})), usage=(10, 5)),
            Text("done", usage=(10, 5)),
        ],
    }
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "lead.md").write_text(
        "---\nname: lead\ndescription: Leads.\ntools: delegate, list_dir\n---\nLead.\n", "utf-8"
    )
    played = play(tmp_path, roles)
    usage = played.seen.result.spend.usage
    assert (usage.input_tokens, usage.output_tokens, usage.estimated) == (141, 20, False)
    own: dict[str, Spend] = {}
    for entry in played.seen.entries:
        if isinstance(entry.event, ModelAnswered):
            spent = spend_of_call(entry.event.usage, entry.event.cost_usd)
            own[entry.address.run_id] = own.get(entry.address.run_id, Spend()) + spent
    sizes = sorted((s.usage.input_tokens, s.usage.output_tokens) for s in own.values())
    assert sizes == [(20, 10), (21, 9), (100, 1)]
    assert [event.result.spend.usage.input_tokens for event in played.seen.events(ChildEnded)] == [100, 121]
    assert played.seen.result.spend.calls == 6


def test_failed_attempts_and_missing_usage_are_paid_for_too(tmp_path: Path) -> None:
    """U03: usage of an attempt that failed in its stream; unknown usage is an estimate, never 0."""
    broken = Raw(delta("Hel"), usage_chunk((30, 0)), delta(finish="error"))
    played = play(tmp_path, {"START": [broken, Text("Hello", usage=(30, 4))]})
    usage = played.seen.result.spend.usage
    assert usage.input_tokens == 60
    assert played.seen.result.spend.calls == 2
    silent = play(tmp_path / "other", {"START": [Text("Hello", usage=None)]})
    assert silent.seen.result.spend.usage.estimated
    assert silent.seen.result.spend.usage.total_tokens > 0
    assert silent.seen.result.spend.cost_usd is None


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "text", ['if a < b && c > "d" 中文', "<b>&amp;</b>", "{{input}} \\1 \\g<0> $& C:\\new", "``` ```json\n{}"]
)
def test_a_result_reads_as_it_was_written_through_every_level(
    tmp_path: Path, text: str, dialect: str
) -> None:
    """B09, R04 to R06: never escaped twice, never expanded."""
    tasks: list[Body] = []

    def answer(body: Body) -> Reply:
        first = content(messages(body)[1])
        if "TASK" in first:
            tasks.append(body)
            return form(text)
        return Text(text) if outputs(body) else act(dialect, hand("coder", f"TASK: repeat {text}"))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        assert seen.result.text == text
        assert seen.text.endswith(text)
        [ended] = seen.events(ChildEnded)
        assert ended.result.summary_data == text
        assert f"TASK: repeat {text}" in spoken(tasks[0])
        told = outputs(
            next(body for body in [request.body for request in provider.requests] if outputs(body))
        )[0]
        record = json.loads(told[told.index('{"status"') : told.rindex("}") + 1])
        assert record["summary_data"] == text

    against_provider(tmp_path, scenario, dialect=dialect)


def test_summaries_and_their_failed_attempts_are_in_the_total(tmp_path: Path) -> None:
    """U01, U03: what the journal says was used is what the run says it used, compactions included."""
    turns = 0

    def answer(body: Body) -> Reply:
        nonlocal turns
        if "shorten the record" in content(messages(body)[0]):
            return Raw(delta("half"), usage_chunk((500, 7)), delta(finish="error"))
        turns += 1
        if turns > 14:
            return Text("done")
        return act("native", ("write_file", {"path": f"{turns}.txt", "content": f"{turns} " * 900}))

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(answer)
        seen = await ask(app, "START")
        assert seen.result.outcome == "success"
        assert seen.events(Compacted)
        total = Spend()
        for entry in seen.entries:
            if isinstance(entry.event, ModelAnswered | AttemptFailed | Compacted):
                total += spend_of_call(entry.event.usage, entry.event.cost_usd)
        assert seen.result.spend.usage == total.usage
        failed = seen.events(AttemptFailed)
        assert failed
        assert all((event.usage.output_tokens, event.retracted) == (7, "") for event in failed)

    against_provider(tmp_path, scenario, window=8_000)
