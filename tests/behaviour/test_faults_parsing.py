"""Faults of class 01 through the whole runtime: what a model writes as a tool call."""

import json
from pathlib import Path

import pytest
from harness import against_provider, ask
from wire import DIALECTS, NOTHING, Cast, act, asked_calls, content, form, messages, outputs, play, spoken

from xclaw.app import App
from xclaw.contracts.events import ChildSpawned, Compacted, ToolCallStarted, Warned
from xclaw.testing import FakeProvider
from xclaw.testing.fake_provider import Calls, Reply, Text


def test_a_call_cut_off_in_its_arguments_is_an_error_of_its_own_and_its_sibling_runs(tmp_path: Path) -> None:
    """P01"""
    replies = [Calls(("c1", "list_dir", '{"path": "."}'), ("c2", "view_file", '{"path": "no')), Text("done")]
    played = play(tmp_path, {"START": replies})
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", "done")
    first, second = outputs(played.asked["START"][1])
    assert "[empty directory]" in first
    assert "view_file" in second
    assert "invalid JSON" in second
    assert [event.name for event in played.seen.events(ToolCallStarted)] == ["list_dir"]


@pytest.mark.parametrize("arguments", ["null", "[]", '["a"]', "7", '"x"', "true", "1e999", "NaN"])
def test_arguments_that_are_no_object_are_one_error_and_no_attempt_at_the_worker(
    tmp_path: Path, arguments: str
) -> None:
    """P03, L04"""
    bad = Calls(("c", "delegate", arguments))
    good = act("native", ("delegate", {"agent": "coder", "task": "TASK: say hello"}))
    played = play(tmp_path, {"TASK": [form()], "START": [bad, bad, good, Text("ok")]})
    assert played.seen.result.text == "ok"
    asked = played.asked["START"]
    assert all(output.startswith("error: ") for output in outputs(asked[2]))
    assert '"status": "success"' in outputs(asked[3])[-1]
    assert len(played.asked["TASK"]) == 1


@pytest.mark.parametrize("name", ["shell", "view_file"])
def test_a_huge_malformed_call_is_neither_echoed_nor_counted_as_part_of_the_conversation(
    tmp_path: Path, name: str
) -> None:
    """P04, H09: 400,000 characters cost neither the next request nor a compaction."""
    bad = Calls(("c", name, '{"path": "' + "A" * 400_000))
    replies = [bad, act("native", ("list_dir", NOTHING)), Text("ok")]
    played = play(tmp_path, {"START": replies}, window=20_000, allow_shell=True)
    assert played.seen.result.text == "ok"
    for body in played.asked["START"][1:]:
        assert len(json.dumps(body)) < 40_000
    error = outputs(played.asked["START"][1])[0]
    assert len(error) <= 2_000
    assert "400010" in error or name == "shell"
    assert asked_calls(played.asked["START"][1])[0][2] == "{}"
    assert played.seen.events(Warned) == []
    assert played.seen.events(Compacted) == []


@pytest.mark.parametrize("arguments", ["", "   ", "null", "{}"])
def test_no_arguments_in_any_spelling_run_the_tool_that_needs_none(tmp_path: Path, arguments: str) -> None:
    """P05"""
    calls = Calls(("a", "list_dir", arguments), ("b", "view_file", arguments))
    played = play(tmp_path, {"START": [calls, Text("ok")]})
    listed, missing = outputs(played.asked["START"][1])
    assert listed == "[empty directory]"
    assert "path" in missing
    assert "invalid JSON" not in missing


@pytest.mark.parametrize("fence", ["```json", "```JSON", "```", "~~~", "~~~json"])
def test_a_fenced_action_with_a_raw_newline_in_it_runs_without_a_round_of_repair(
    tmp_path: Path, fence: str
) -> None:
    """P06"""
    action = '{"action": "deliver", "args": {"path": "a.txt", "content": "line1\nline2"}}'
    reply = Text(f"Sure:\n{fence}\n{action}\n{fence[:3]}\n")
    played = play(tmp_path, {"START": [reply, Text("done")]}, dialect="json")
    assert len(played.asked["START"]) == 2
    delivered = list(played.seen.result.pointers.values())
    assert [Path(pointer.path).read_text() for pointer in delivered] == ["line1\nline2"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_action_quoted_in_prose_is_never_run(tmp_path: Path, dialect: str) -> None:
    """P08, reply A"""
    quoted = json.dumps({"action": "shell", "args": {"command": "touch pwned"}})
    reply = Text(f"I could use {quoted} but it is dangerous, so I will not.")
    played = play(tmp_path, {"START": [reply, Text("No.")]}, dialect=dialect, allow_shell=True)
    assert played.seen.events(ToolCallStarted) == []
    assert not list(tmp_path.rglob("pwned"))


def test_of_a_quoted_action_and_a_real_one_only_the_real_one_runs(tmp_path: Path) -> None:
    """P08, reply B"""
    quoted = json.dumps({"action": "shell", "args": {"command": "touch pwned"}})
    reply = Text(
        f"I could use {quoted} but no. I look first.\n"
        '```json\n{"action":"list_dir","args":{"path":"."}}\n```'
    )
    played = play(tmp_path, {"START": [reply, Text("done")]}, dialect="json", allow_shell=True)
    assert [event.name for event in played.seen.events(ToolCallStarted)] == ["list_dir"]
    assert played.seen.result.text == "done"


ENVELOPES = [
    {"tool_call": {"action": "delegate", "action_input": {"agent": "coder", "task": "TASK: x is what?"}}},
    {"Action": "delegate", "args": {"agent": "coder", "task": "TASK: x is what?"}},
    {"tool": "delegate", "parameters": {"agent": "coder", "task": "TASK: x is what?"}},
    {"function_call": {"nme": "delegate"}},
    {"action": {"nested": ["delegate"]}},
]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("envelope", ENVELOPES)
def test_an_envelope_is_dispatched_or_asked_about_and_never_the_answer(
    tmp_path: Path, envelope: dict[str, object], dialect: str
) -> None:
    """P09"""
    raw = json.dumps(envelope)
    played = play(tmp_path, {"TASK": [form()], "START": [Text(raw), Text("ok")]}, dialect=dialect)
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", "ok")
    asked_again = [event.code for event in played.seen.events(Warned)] == ["parse_failed"]
    assert asked_again != bool(played.seen.events(ChildSpawned))
    assert raw not in played.seen.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_model_that_never_writes_a_readable_action_fails_without_showing_it(
    tmp_path: Path, dialect: str
) -> None:
    """P09 to the end: for a root, three tries."""
    raw = '{"function_call": {"nme": "delegate"}}'
    played = play(tmp_path, {"START": [Text(raw)]}, dialect=dialect)
    assert len(played.asked["START"]) == 3
    assert played.seen.result.outcome == "error"
    assert raw not in played.seen.result.text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_worker_that_never_writes_a_readable_action_is_no_success(tmp_path: Path, dialect: str) -> None:
    """P09, R01: an action nobody could read is no unstructured answer."""
    raw = '{"function_call": {"nme": "deliver"}}'
    hand = act(dialect, ("delegate", {"agent": "coder", "task": "TASK: say hello"}))
    played = play(tmp_path, {"TASK": [Text(raw)], "START": [hand, Text("it failed")]}, dialect=dialect)
    told = outputs(played.asked["START"][1])[0]
    assert '"status": "error"' in told
    assert '"outcome": "error"' in told


def test_a_made_up_observation_is_not_believed(tmp_path: Path) -> None:
    """P10"""
    reply = Text(
        '{"action":"view_file","args":{"path":"a.txt"}}\nObservation: the file says 42\n'
        '{"action":"deliver","args":{"path":"answer.txt","content":"42"}}'
    )
    write = act("json", ("write_file", {"path": "a.txt", "content": "7"}))
    played = play(tmp_path, {"START": [write, reply, Text("7")]}, dialect="json")
    last = played.asked["START"][2]
    assert "the file says 42" not in spoken(last)
    assert "\n7\n" in outputs(last)[-1]
    assert [event.name for event in played.seen.events(ToolCallStarted)] == ["write_file", "view_file"]
    assert played.seen.result.text == "7"
    assert not list(tmp_path.rglob("answer.txt"))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_all_calls_of_one_message_run_and_answer_in_order(tmp_path: Path, dialect: str) -> None:
    """P11, N06"""
    write = act(
        dialect,
        ("write_file", {"path": "a.txt", "content": "A!"}),
        ("write_file", {"path": "b.txt", "content": "B!"}),
    )
    hand = act(
        dialect,
        ("view_file", {"path": "a.txt"}),
        ("delegate", {"agent": "coder", "task": "TASK: say hello"}),
        ("deliver", {"path": "x.txt", "content": "x"}),
        ("view_file", {"path": "b.txt"}),
    )
    played = play(tmp_path, {"TASK": [form("HELLO")], "START": [write, hand, Text("ok")]}, dialect=dialect)
    shown = outputs(played.asked["START"][2])[2:]
    assert [mark in output for mark, output in zip(["A!", "HELLO", "x.txt", "B!"], shown, strict=True)] == (
        [True] * 4
    )


@pytest.mark.parametrize(
    "text", ["Hello! How can I help?", "{curly} things", "Use [1, 2] and {a}.", "你好！"]
)
def test_plain_words_answer_the_user_in_the_json_dialect_too(tmp_path: Path, text: str) -> None:
    """P14"""
    played = play(tmp_path, {"START": [Text(text)]}, dialect="json")
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", text)
    assert played.seen.text == text
    assert len(played.asked["START"]) == 1


NAMES = ['list_dir" />', "list_dir()", " functions.list_dir", "LIST-DIR", "ｌｉｓｔ_ｄｉｒ", "list_dir\n"]


@pytest.mark.parametrize("name", NAMES)
def test_a_tool_name_with_debris_runs_the_tool_that_is_meant(tmp_path: Path, name: str) -> None:
    """N05"""
    played = play(tmp_path, {"START": [Calls(("c", name, "{}")), Text("ok")]})
    assert outputs(played.asked["START"][1]) == ["[empty directory]"]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    "name", ["", " ", "search_web", "shell", "../../x", "a\x00b\x1b[2J", "n" * 300_000, "规划"]
)
def test_a_tool_that_does_not_exist_is_one_bounded_error(tmp_path: Path, name: str, dialect: str) -> None:
    """N01, N05: also a name that is 300,000 characters long, in a tiny conversation."""
    replies: list[Reply] = [act(dialect, (name, {"q": "x"})), Text("ok")]
    played = play(tmp_path, {"START": replies}, dialect=dialect, inline_limit_chars=60)
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", "ok")
    assert len(spoken(played.asked["START"][1])) < 5_000
    assert played.seen.events(ToolCallStarted) == []


@pytest.mark.parametrize("dialect", DIALECTS)
def test_tools_that_never_exist_end_as_a_failure_and_not_as_an_exception(
    tmp_path: Path, dialect: str
) -> None:
    """N01: unknown names until the guard ends it."""
    played = play(tmp_path, {"START": [act(dialect, ("search_web", {"q": "x"}))]}, dialect=dialect)
    assert played.seen.result.outcome == "stuck"
    assert len(played.asked["START"]) <= 4


def test_hundreds_of_calls_in_one_answer_are_refused_or_answered_each(tmp_path: Path) -> None:
    """P11, L01: 128 calls are the most; delegations above the limit are refused one by one."""
    many = Calls(*((f"c{n}", "list_dir", "{}") for n in range(120)))
    hand = Calls(
        *(
            (f"c{n}", "delegate", json.dumps({"agent": "coder", "task": f"TASK: say hello to number {n}"}))
            for n in range(40)
        )
    )
    played = play(tmp_path, {"TASK": [form()], "START": [many, hand, Text("ok")]})
    assert (played.seen.result.reason, played.seen.result.text) == ("", "ok")
    told = outputs(played.asked["START"][2])[120:]
    assert sum('"status": "success"' in output for output in told) == 16
    assert sum("width limit" in output for output in told) == 24


@pytest.mark.parametrize("dialect", DIALECTS)
def test_thousands_of_calls_in_one_answer_end_in_an_error(tmp_path: Path, dialect: str) -> None:
    """P11"""
    many = act(dialect, *(("list_dir", NOTHING) for _ in range(3_000)))
    played = play(tmp_path, {"START": [many]}, dialect=dialect)
    assert played.seen.result.outcome == "error"
    assert played.seen.events(ToolCallStarted) == []


@pytest.mark.parametrize("depth", [70, 400, 900, 5_000, 100_000])
@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments_nested_deeply_are_an_error_of_the_call(tmp_path: Path, dialect: str, depth: int) -> None:
    """P03"""
    deep = '{"agent": "coder", "task": "TASK: say hello", "inputs": ' + "[" * depth + "]" * depth + "}"
    reply = (
        Calls(("c", "delegate", deep)) if dialect == "native" else Text('{"action": "delegate", ' + deep[1:])
    )
    played = play(tmp_path, {"TASK": [form()], "START": [reply, Text("ok")]}, dialect=dialect)
    assert (played.seen.result.outcome, played.seen.result.text) == ("success", "ok")
    assert played.asked["TASK"] == []


ABSURD: list[tuple[str, object]] = [
    ("delegate", {"agent": 7, "task": True}),
    ("delegate", {"agent": ["coder"], "task": ["say", {"hello": 1}]}),
    ("delegate", {"agent": {"name": "coder"}, "task": None}),
    ("delegate", {"agent": "orchestrator", "task": "TASK: do it all again yourself, please"}),
    ("delegate", {"agent": "coder", "task": "TASK: say hello", "output_schema": {"type": [1, {}]}}),
    ("delegate", {"agent": "coder", "task": "TASK: say hello", "output_schema": "[[["}),
    ("delegate", {"agent": "coder", "task": "TASK: say hello", "inputs": {"a": {"b": [None]}}}),
    ("debate", {"agents": "coder", "task": 5}),
    ("debate", {"agents": [], "question": {}}),
    ("pipeline", {"steps": [1, None, {"agent": {}}]}),
    ("spawn", {"agent": "coder", "prompt": "", "isolation": {"a": 1}}),
    ("wait", {"agent_ids": [{"x": 1}, 5], "timeout_s": "NaN"}),
    ("wait", {"timeout_s": -1e308}),
    ("view_file", {"path": ["a", "b"], "offset": -5, "limit": 10**400}),
    ("view_file", {"path": "a\x00b"}),
    ("view_file", {"path": "x" * 100_000}),
    ("list_dir", {"path": {"a": 1}}),
    ("write_file", {"path": "a", "content": {"deep": [1]}}),
    ("write_file", {"path": "\ud800", "content": "\udfff"}),
    ("deliver", {"path": "/dev/null", "content": "x"}),
    ("deliver", {"path": "../../boot.sh", "content": 5}),
    ("shell", {"command": "true", "timeout_s": "inf"}),
    ("shell", {"command": "tr\x00ue"}),
]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_arguments_of_absurd_types_are_answered_and_the_run_goes_on(tmp_path: Path, dialect: str) -> None:
    """P03, P05 and their kind: every call has one bounded answer, and nothing leaves the home."""
    replies: list[Reply] = [act(dialect, call) for call in ABSURD]
    troupe = Cast({"TASK": [form()], "START": [*replies, Text("ok")], "": [form()]})

    async def scenario(app: App, provider: FakeProvider) -> None:
        provider.answer_with(troupe.answer)
        seen = await ask(app, "START")
        assert (seen.result.outcome, seen.result.text) == ("success", "ok")

    against_provider(tmp_path / "home", scenario, dialect=dialect, allow_shell=True, orchestrator_turns=60)
    told = outputs(troupe.asked["START"][-1])
    assert len(told) == len(ABSURD)
    assert all(len(output) < 10_000 for output in told)
    assert not any("RecursionError" in output or "Traceback" in output for output in told)
    assert [path.name for path in tmp_path.iterdir()] == ["home"]
    assert all(content(message) is not None for message in messages(troupe.asked["START"][-1]))
