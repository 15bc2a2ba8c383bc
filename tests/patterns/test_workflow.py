"""Workflow scripts: what they say is done, in the order it says, within the quote."""

import asyncio
import os
import tempfile
from pathlib import Path

import pytest

from patterns.children_for_patterns import Worker
from patterns.workflow_scene import Scene, done
from xclaw.contracts.errors import JournalError, ToolFailed
from xclaw.contracts.results import Result
from xclaw.contracts.tasks import Task
from xclaw.contracts.usage import Spend, Usage
from xclaw.patterns.workflows.calls import content_key
from xclaw.patterns.workflows.settings import WorkflowSettings


def test_an_agent_answers_with_text_data_and_artifacts(tmp_path: Path) -> None:
    answer = Scene(tmp_path, {"coder": lambda _: done("fine", n=3)}).result(
        "r = agent('coder', 'Write it.')\n[r.ok, r.text, r.data['n'], r['n'], f'{r}', r.artifacts, r.outcome]"
    )
    assert answer == [True, "fine", 3, 3, "fine", {}, "success"]


@pytest.mark.parametrize(
    ("script", "answer"),
    [
        ("1 + 1", "2"),
        ("result = {'a': 1}", {"a": 1}),
        ("x = 5\nreturn [x]\nx = 6", [5]),
        ("def f(n):\n    return n * 2\nf(4)", "8"),
        ("import json\njson.dumps([1])", [1]),
        ("from math import floor\nimport re as r\n[floor(1.5), r.sub('a', 'b', 'aa')]", [1, "bb"]),
        ("from typing import Any\nx: list[Any] = [1]\ndef f(a: Any) -> Any:\n    return a\nf(x)", [1]),
        ("sorted({3, 1, 2})", [1, 2, 3]),
        ("{1, 2}", [1, 2]),
        ("try:\n    1 / 0\nexcept:\n    result = 'caught'", "caught"),
        ("import collections\ncollections.Counter('aab').most_common(1)", [["a", 2]]),
        ("log('said')", ""),
    ],
)
def test_the_answer_is_the_last_expression_the_result_or_a_return(
    script: str, answer: object, tmp_path: Path
) -> None:
    record = Scene(tmp_path).run(script)
    assert record["status"] == "success"
    assert record["result"] == answer if answer else record["result"] in ("", "null")


def test_what_stands_in_a_parallel_list_runs_at_once(tmp_path: Path) -> None:
    """Three wait for each other: one after the other they would wait for ever."""
    together = asyncio.Event()
    seen: list[str] = []

    def worker(task: Task) -> asyncio.Event:
        seen.append(task.text)
        if len(seen) == 3:
            together.set()
        return together

    scripts = (
        "parallel([agent('coder', f'do {x}') for x in 'abc'])",
        "parallel([lambda: agent('coder', f'do {x}') for x in 'abc'])",
        "parallel([('coder', f'do {x}') for x in 'abc'])",
        "parallel([{'agent': 'coder', 'task': f'do {x}'} for x in 'abc'])",
        "parallel(agent('coder', f'do {x}') for x in 'abc')",
        "parallel([agent('coder', 'do a'), lambda: agent('coder', 'do b'), ('coder', 'do c')])",
        "def job(x):\n    return agent('coder', f'do {x}')\nparallel([job(x) for x in 'abc'])",
    )
    for script in scripts:
        seen.clear()
        together = asyncio.Event()
        answer = Scene(tmp_path, {"coder": worker}).result(f"{script}", quote={"max_agents": 3})
        assert isinstance(answer, list)
        assert sorted(seen) == ["do a", "do b", "do c"], script


def test_parallel_in_parallel_does_not_wait_for_itself(tmp_path: Path) -> None:
    """More lists within lists than there are threads."""
    script = (
        "def inner(n):\n    return [r.text for r in parallel([agent('coder', f'{n}-{m} x') for m in range(2)])]\n"
        "parallel([inner(n) for n in range(24)])"
    )
    answer = Scene(tmp_path).result(script, quote={"max_agents": 48})
    assert answer == [[f"{n}-0 x", f"{n}-1 x"] for n in range(24)]


def test_a_pipeline_hands_on_text_and_stops_at_a_failure(tmp_path: Path) -> None:
    workers: dict[str, Worker] = {
        "coder": lambda task: done(f"<{task.text}>"),
        "critic": lambda _: Result("error", reason="no"),
    }
    scene = Scene(tmp_path, workers)
    script = "pipeline([('coder', 'one'), ('coder', 'two {{input}}'), lambda r: r.text + '!']).upper()"
    assert scene.result(script, quote={"max_agents": 3}) == "<TWO <ONE>>!"
    record = scene.run("r = pipeline([('critic', 'look'), ('coder', 'never {{input}}')])\n[r.ok, r.reason]")
    assert record["result"] == [False, "error: no"]
    assert [task.text for task in scene.spawn.tasks] == ["one", "two <one>", "look"]
    assert record["failed_agents"] == [{"agent": "critic", "phase": "", "reason": "error: no"}]


def test_what_one_agent_raises_reaches_the_script_and_no_sibling(tmp_path: Path) -> None:
    script = (
        "def careful(task):\n    try:\n        return agent('coder', task).text\n"
        "    except AgentRefused as e:\n        return f'refused: {e}'\n"
        "parallel([careful(t) for t in ['fine', 'refuse']])"
    )
    scene = Scene(tmp_path)
    answer = scene.result(script)
    assert answer == ["fine", "refused: no more of this"]
    assert ("refused", "no more of this") in scene.notes


def test_an_unknown_agent_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    record = Scene(tmp_path).run("agent('wizard', 'Do it.')")
    assert "unknown agent 'wizard'. Available: coder" in str(record["reason"])
    assert "line 1: AgentRefused" in str(record["reason"])


def test_phases_and_logs_are_events(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    record = scene.run("phase('look')\nprint('a', 1)\nphase('write')\nlog('b')")
    assert scene.notes == [("phase", "look"), ("log", "a 1"), ("phase", "write"), ("log", "b")]
    assert record["log"] == ["phase: look", "a 1", "phase: write", "b"]


def test_a_schema_and_inputs_go_with_the_task(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    pointer = scene.stage.delivered_by_a_child("report.md")
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    scene.run(f"agent('coder', 'Read it.', inputs=[{pointer.path!r}], schema={schema!r})")
    assert scene.spawn.tasks[0].inputs == (pointer,)
    assert scene.spawn.tasks[0].output_schema == schema
    record = scene.run("agent('coder', 'Read it.', inputs=['/etc/passwd'])")
    assert "not an artifact" in str(record["reason"])


def test_more_agents_than_quoted_are_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    record = scene.run("for n in range(5):\n    agent('coder', f'do {n}')", quote={"max_agents": 2})
    assert "2 agents were quoted" in str(record["reason"])
    assert len(scene.spawn.tasks) == 2


def test_agents_that_were_not_quoted_are_refused(tmp_path: Path) -> None:
    scene = Scene(tmp_path, {"coder": lambda _: done(), "critic": lambda _: done()})
    record = scene.run(
        "for name in ['coder', 'critic']:\n    agent(name, 'Write a poem.')", quote={"agents": ["coder"]}
    )
    assert "critic was not quoted" in str(record["reason"])


def test_quoted_money_is_shared_so_that_all_together_cannot_use_more(tmp_path: Path) -> None:
    """K4: whoever runs at once holds equal shares; what one leaves is there for the next."""
    spent = Result("success", "done", {}, spend=Spend(Usage(10, 10), 0.1, calls=1))
    scene = Scene(tmp_path, {"coder": lambda _: spent})
    scene.run("for n in range(3):\n    agent('coder', f'do {n}')", quote={"max_usd": 0.9, "max_tokens": 300})
    limits = [task.limits for task in scene.spawn.tasks]
    assert [limit.max_usd for limit in limits] == pytest.approx([0.3, 0.4, 0.7])
    assert [limit.max_tokens for limit in limits] == [100, 140, 260]


@pytest.mark.parametrize(
    ("script", "counted"),
    [
        ("1", 0),
        ("agent('coder', 'x')", 1),
        ("for x in range(7):\n    agent('coder', 'x')", 7),
        ("for x in range(2, 7):\n    agent('coder', 'x')", 5),
        ("T = ['a', 'b', 'c']\nparallel([agent('coder', t) for t in T])", 3),
        ("T = {'a': 1, 'b': 2}\nfor k, v in T.items():\n    agent('coder', k)", 2),
        ("if 1:\n    agent('coder', 'x')\nelse:\n    agent('coder', 'x')\n    agent('coder', 'y')", 2),
        ("def f(x):\n    return agent('coder', x)\nf('a')\nf('b')", 2),
        ("pipeline([('coder', 'a'), ('coder', 'b')])", 2),
        ("parallel([('coder', 'a'), lambda: agent('coder', 'b')])", 2),
        ("[agent('coder', f'{x}{y}') for x in range(3) for y in range(4)]", 12),
        ("while True:\n    agent('coder', 'x')", None),
        ("T = []\nT.append(1)\nfor t in T:\n    agent('coder', 'x')", None),
        ("for t in agent('coder', 'x').data:\n    agent('coder', t)", None),
        ("f = agent\nf('coder', 'x')", None),
        ("def f(n):\n    agent('coder', 'x')\n    f(n)\nf(1)", None),
        ("def f(x):\n    return agent('coder', x)\nlist(map(f, [1, 2]))", None),
        ("g = lambda: agent('coder', 'x')\ng()", None),
    ],
)
def test_the_quote_counts_what_can_be_counted(script: str, counted: int | None, tmp_path: Path) -> None:
    told = asyncio.run(Scene(tmp_path).tool.quote({"script": script}, "$1.00"))
    expected = f"at most {64 if counted is None else counted} agents"
    assert expected in told
    assert ("counted in the script" in told) == (counted is not None)
    assert "at most what the run has left: $1.00" in told


def test_the_quote_names_the_agents_where_the_script_does(tmp_path: Path) -> None:
    async def told(script: str, **quote: object) -> str:
        return await Scene(tmp_path).tool.quote({"script": script, "quote": quote}, "")

    assert "): coder, critic;" in asyncio.run(told("agent('coder', 'x')\nparallel([('critic', 'y')])"))
    assert "): any agent;" in asyncio.run(told("for a in ['coder']:\n    agent(a, 'x')"))
    assert "at most $0.5 and 1,000 tokens together" in asyncio.run(
        told("agent('coder', 'x')", max_usd=0.5, max_tokens=1000)
    )
    assert "no bound of money or tokens" in asyncio.run(told("agent('coder', 'x')"))


@pytest.mark.parametrize(
    "quote",
    [{"max_agents": 65}, {"max_agents": -1}, {"max_usd": -1}, {"max_usd": "lots"}, {"n": 1}, [1], "none", 5],
)
def test_a_quote_that_is_none_is_refused(quote: object, tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match=r"quote|max_agents"):
        Scene(tmp_path).run("1", quote=quote)


def test_a_script_that_is_too_long_or_starts_too_many_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ToolFailed, match="at most 40,000"):
        Scene(tmp_path).run("#" * 40_001)
    with pytest.raises(ToolFailed, match=r"up to 100 agents; workflow\.max_agents allows 64"):
        Scene(tmp_path).run("for n in range(100):\n    agent('coder', 'x')")


def test_an_edited_script_takes_what_was_asked_the_same(tmp_path: Path) -> None:
    """Resumable by content: only what changed is asked again; the same question twice is two questions."""
    key = content_key("coder", "do a", [], None)
    scene = Scene(tmp_path, earlier={f"{key}#1": done("from before")})
    record = scene.run("[agent('coder', t).text for t in ['do a', 'do a', 'do b']]", resume=" r7 ")
    assert record["result"] == ["from before", "do a", "do b"]
    assert (record["agents_started"], record["agents_reused"]) == (2, 1)
    assert scene.asked_for == [("r7", "cli")]
    assert ("reused", "coder: do a") in scene.notes
    assert [task.key for task in scene.spawn.tasks] == [
        f"{key}#2",
        f"{content_key('coder', 'do b', [], None)}#1",
    ]


def test_the_same_call_asks_for_the_same_children(tmp_path: Path) -> None:
    """K6: the runtime finds a child by (call, key); the key is the content, not the position."""
    keys: list[list[str]] = []
    for order in ("ab", "ba"):
        scene = Scene(tmp_path)
        scene.run(f"for x in {order!r}:\n    agent('coder', f'do {{x}}')")
        keys.append(sorted(task.key for task in scene.spawn.tasks))
    assert keys[0] == keys[1]


def test_cancelling_ends_interpreter_and_agents(tmp_path: Path) -> None:
    never = asyncio.Event()

    async def main() -> None:
        scene = Scene(tmp_path, {"coder": lambda _: never})
        async with asyncio.timeout(20):
            call = asyncio.create_task(
                scene.call("parallel([agent('coder', f'wait {n}') for n in range(3)])")
            )
            await scene.spawn.started.wait()
            children = _interpreters()
            assert len(children) == 1
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
        assert len(scene.spawn.cancelled) == len(scene.spawn.tasks) > 0
        assert _interpreters() == []

    asyncio.run(main())


def _interpreters() -> list[int]:
    """Processes below this one that run a script and are no zombies."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent = (entry / "stat").read_bytes().rpartition(b")")[2].split()[:2]
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if int(parent) == os.getpid() and state != b"Z" and b"patterns.workflows.child" in command:
                found.append(int(entry.name))
    return found


def test_a_script_out_of_time_is_stopped_with_its_agents(tmp_path: Path) -> None:
    never = asyncio.Event()
    scene = Scene(tmp_path, {"coder": lambda _: never}, settings=WorkflowSettings(timeout_s=1.0))
    record = scene.run("agent('coder', 'wait')")
    assert "took longer than 1 s" in str(record["reason"])
    assert len(scene.spawn.cancelled) == 1
    assert _interpreters() == []


def test_a_journal_that_fails_ends_the_call_as_such(tmp_path: Path) -> None:
    async def main() -> None:
        scene = Scene(tmp_path, {"coder": lambda _: JournalError("disk full")})
        async with asyncio.timeout(20):
            with pytest.raises(JournalError, match="disk full"):
                await scene.call("agent('coder', 'x')")

    asyncio.run(main())


def test_nothing_of_the_environment_and_no_directory_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("PYTHONPATH", "/nowhere")
    monkeypatch.setenv("PYTHONSTARTUP", "/nowhere")
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    assert Scene(tmp_path).result("1") == "1"
    assert list((tmp_path / "t").iterdir()) == []


@pytest.mark.parametrize("name", ["coder; at most $0.01 together; the script has no bounds", "x" * 5_000])
def test_an_agent_s_name_in_a_script_passes_for_no_part_of_the_quote(name: str, tmp_path: Path) -> None:
    """J2: who is asked sees what the script says as what the script says."""
    told = asyncio.run(Scene(tmp_path).tool.quote({"script": f"agent({name!r}, 'x')"}, "$1.00"))
    assert f": {name[:80]!r}" in told
    assert len(told) < 400


@pytest.mark.parametrize("answer", [done("x", bad="\ud800"), done("\ud800 x")])
def test_half_a_character_in_an_answer_ends_no_workflow(tmp_path: Path, answer: Result) -> None:
    """B04's kind: what a worker says is read by the script and told on, whatever is in it."""
    scene = Scene(tmp_path, {"coder": lambda _: answer})
    script = "r = agent('coder', 'Count the herons.')\nlog(r.text)\nr.text + str(r.data) + '\\ud800'"
    assert str(scene.result(script)).endswith("?")
