"""Rules answer from the request alone; the provider as a process serves them."""

import asyncio
import signal
import sys
from pathlib import Path

import aiohttp
import msgspec
import pytest

from xclaw.contracts.errors import UsageError
from xclaw.testing import Calls, Cut, FakeRules, Raw, Status, Text, delta

RULES = """
- agent: orchestrator
  when: build
  replies:
    - calls:
        - {name: delegate, arguments: {agent: coder, task: one}}
        - {name: delegate, arguments: {agent: coder, task: two}}
    - text: done
- agent: You are Coder
  replies:
    - calls: [{name: deliver, arguments: {path: "{{delivery_dir}}/a.md", content: "{{input}}"}}]
    - text: {status: success, artifact_pointers: {a: "{{pointer:a.md}}"}}
- when: break
  replies: [{fail: interrupted, after: hal}, {fail: unavailable}, {fail: rejected}]
"""
TASK = "[Task workspace: /w/x y]\n\n[Shared delivery dir: /d/x y]\n\nwrite"


def _rules(tmp_path: Path, text: str = RULES, chunks: int = 0) -> FakeRules:
    path = tmp_path / "rules.yaml"
    path.write_text(text)
    return FakeRules.from_file(path, chunks)


def _body(*messages: tuple[str, str]) -> dict[str, object]:
    return {"messages": [{"role": role, "content": content} for role, content in messages]}


def _refusal(rules: FakeRules, *messages: tuple[str, str]) -> str:
    reply = rules.answer(_body(*messages))
    assert isinstance(reply, Status)
    assert reply.code == 400
    return str(reply.body)


def test_the_place_in_the_script_follows_from_the_request(tmp_path: Path) -> None:
    rules = _rules(tmp_path)
    start = [("system", "You are the Orchestrator."), ("user", "build it")]
    later = [("assistant", ""), ("tool", "one done"), ("tool", "two done")]
    for _ in range(2):
        assert rules.answer(_body(*start)) == Calls(
            ("call_0", "delegate", '{"agent":"coder","task":"one"}'),
            ("call_1", "delegate", '{"agent":"coder","task":"two"}'),
        )
        assert rules.answer(_body(*start, *later)) == Text("done")


def test_a_second_request_of_a_session_starts_the_script_again(tmp_path: Path) -> None:
    rules = _rules(tmp_path)
    first = [("system", "orchestrator"), ("user", "build it"), ("assistant", ""), ("assistant", "done")]
    assert isinstance(rules.answer(_body(*first, ("user", "now build more"))), Calls)
    assert "number 3 was asked for" in _refusal(rules, *first, ("user", "<task-notification/>"))


def test_placeholders_come_from_the_headers_and_the_results(tmp_path: Path) -> None:
    """R04: a value is filled in once and literally, other braces stay."""
    rules = _rules(tmp_path)
    start = [("system", "You are Coder"), ("user", TASK)]
    assert rules.answer(_body(*start)) == Calls(
        ("call_0", "deliver", '{"path":"/d/x y/a.md","content":"{{input}}"}')
    )
    done = [("assistant", ""), ("tool", "delivered: /d/x y/a.v2.md")]
    assert rules.answer(_body(*start, *done)) == Text(
        '{"status":"success","artifact_pointers":{"a":"/d/x y/a.v2.md"}}'
    )
    assert "pointer:a.md" in _refusal(rules, *start, ("assistant", ""), ("tool", "it failed"))


def test_failures_are_answers_too(tmp_path: Path) -> None:
    rules = _rules(tmp_path)
    messages = [("user", "break it")]
    assert rules.answer(_body(*messages)) == Raw(delta("hal"), Cut())
    assert rules.answer(_body(*messages, ("assistant", ""))) == Status(503)
    assert rules.answer(_body(*messages, ("assistant", ""), ("assistant", ""))) == Status(400)


def test_what_no_rule_answers_is_refused_clearly(tmp_path: Path) -> None:
    rules = _rules(tmp_path)
    assert "no rule matches" in _refusal(rules, ("user", "something else"))
    assert "no rule matches" in _refusal(rules)


def test_texts_are_cut_into_chunks(tmp_path: Path) -> None:
    rules = _rules(tmp_path, "- replies: [{text: abcdefghij}]", chunks=4)
    assert rules.answer(_body(("user", "x"))) == Text("abcdefghij", chunk=3)


def test_a_bad_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rules.yaml, entry 1: .*`replyes`"):
        _rules(tmp_path, "- replyes: []")


async def _start(*arguments: str) -> tuple[asyncio.subprocess.Process, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "xclaw.testing.fake_provider", *arguments, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    line = await process.stdout.readline()
    return process, msgspec.json.decode(line, type=dict[str, str])["url"]


def test_the_process_serves_rules_after_its_latency_and_ends_on_sigterm(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("- replies: [{text: hello}]")

    async def main() -> None:
        arguments = ("--rules", str(tmp_path / "rules.yaml"), "--latency-ms", "50", "--chunks", "2")
        async with asyncio.timeout(20):
            process, url = await _start(*arguments)
            try:
                loop = asyncio.get_running_loop()
                body = _body(("user", "hi")) | {"stream": True}
                async with aiohttp.ClientSession() as http:
                    began = loop.time()
                    async with http.post(f"{url}/chat/completions", json=body) as response:
                        stream = await response.read()
                    took = loop.time() - began
                    async with http.get(url.removesuffix("/v1") + "/stats") as response:
                        stats = msgspec.json.decode(await response.read(), type=dict[str, object])
            finally:
                process.send_signal(signal.SIGTERM)
                code = await process.wait()
        assert delta("hel") + delta("lo") + delta(finish="stop") in stream
        assert took >= 0.05
        assert (stats["requests"], stats["finished"], stats["connections"]) == (1, 1, 1)
        assert code == 0

    asyncio.run(main())
