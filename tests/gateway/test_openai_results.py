"""How runs end, for a client of chat completions: reasons, errors, usage, files."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path

import pytest
from yarl import URL

from gateway.openai_scene import ADD, Scene, at_the_wire, joined
from xclaw.settings import Settings
from xclaw.testing.fake_replies import Calls, Cut, Hang, Raw, Text, Until, delta, usage_chunk

LONG = "This is a rather long answer, sentence after sentence. " * 12


def test_the_whole_tree_is_in_the_usage_and_in_the_cost(tmp_path: Path) -> None:
    """U01, U03: the orchestrator's calls, a worker's, and one that failed."""

    async def body(scene: Scene) -> None:
        task = json.dumps(
            {"agent": "coder", "task": "TASK: count the letters of the word one and give the number"}
        )
        result = '{"status":"success","summary_data":{"n":1},"artifact_pointers":{}}'
        scene.provider.queue(
            Calls(("c", "delegate", task), usage=(10, 5)),
            Raw(delta("hal"), usage_chunk((30, 0)), Cut()),
            Text(result, usage=(100, 1)),
            Text("One.", usage=(10, 5)),
        )
        got = (await scene.chat(model="xclaw/orchestrator")).json
        assert got["choices"][0]["message"]["content"] == "One."
        usage, run = got["usage"], got["xclaw"]["run"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert usage["prompt_tokens"] >= 120
        assert got["xclaw"]["model_calls"] == 4
        async with scene.http.get(
            f"{scene.served.url}/api/v1/runs/{run}", headers=scene.served.headers()
        ) as response:
            told = await response.json()
        assert told["usage"]["input_tokens"] == usage["prompt_tokens"]
        assert told["usage"]["output_tokens"] == usage["completion_tokens"]
        assert told["cost_usd"] == got["xclaw"]["cost_usd"]

    at_the_wire(tmp_path, body)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_token_limit_cuts_the_answer_and_ends_the_run(tmp_path: Path, name: str) -> None:
    async def body(scene: Scene) -> None:
        for stream in (False, True):
            goes_on = asyncio.Event()
            scene.provider.queue(Raw(delta(LONG), Until(goes_on)))
            limit = {name: 110}
            if stream:
                events = await scene.chat_stream(**limit)
                text, finish = joined(events), json.loads(events[-2])["choices"][0]["finish_reason"]
            else:
                got = await scene.chat(**limit)
                text, finish = got.text, got.json["choices"][0]["finish_reason"]
            assert finish == "length"
            assert text == LONG[:440]
            async with asyncio.timeout(2):
                await scene.provider.requests[-1].closed.wait()
        assert [outcome for _, outcome in await scene.runs()] == ["cancelled", "cancelled"]

    at_the_wire(tmp_path, body)


def test_an_answer_that_the_model_could_not_finish_has_the_reason_length(tmp_path: Path) -> None:
    """S16."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(Text("Half an ans", finish="length"), Text("Half an ans", finish="length"))
        got = (await scene.chat()).json["choices"][0]
        assert (got["finish_reason"], got["message"]["content"]) == ("length", "Half an ans")
        events = await scene.chat_stream()
        assert joined(events) == "Half an ans"

    at_the_wire(tmp_path, body)


def test_a_half_tool_call_is_not_handed_to_the_client(tmp_path: Path) -> None:
    """S16."""

    async def body(scene: Scene) -> None:
        scene.provider.queue(
            Calls(("c", "add", '{"a": '), finish="length"), Calls(("c", "add", '{"a": 1, "b": 2}'))
        )
        got = (await scene.chat(tools=[ADD])).json["choices"][0]
        assert got["finish_reason"] == "tool_calls"
        assert [call["function"]["arguments"] for call in got["message"]["tool_calls"]] == [
            '{"a": 1, "b": 2}'
        ]

    at_the_wire(tmp_path, body)


def test_a_budget_that_is_spent_is_an_error_that_clients_do_not_repeat(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        got = await scene.chat()
        assert got.error == (429, "over_budget")
        assert got.json["error"]["type"] == "insufficient_quota"
        assert got.headers["x-should-retry"] == "false"

    def poor(settings: Settings) -> Settings:
        return replace(settings, runtime=replace(settings.runtime, budget_tokens=10))

    at_the_wire(tmp_path, body, change=poor)


def test_a_run_that_takes_too_long_is_a_timeout(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        scene.provider.queue(Hang())
        assert (await scene.chat()).error == (504, "run_timeout")

    def hurried(settings: Settings) -> Settings:
        return replace(settings, runtime=replace(settings.runtime, timeout_s=0.2))

    at_the_wire(tmp_path, body, change=hurried)


def test_what_was_delivered_can_be_fetched_from_the_answer(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        deliver = json.dumps({"path": "hello world.txt", "content": "hello"})
        scene.provider.queue(Calls(("c", "deliver", deliver)), Text("Delivered."))
        told = (await scene.chat()).json["xclaw"]
        assert (told["outcome"], [file["name"] for file in told["artifacts"]]) == (
            "success",
            ["hello world.txt"],
        )
        assert str(tmp_path) not in json.dumps(told)
        url = URL(scene.served.url + told["artifacts"][0]["url"], encoded=True)
        async with scene.http.get(url, headers=scene.served.headers()) as response:
            assert await response.read() == b"hello"

    at_the_wire(tmp_path, body)


def test_an_answer_without_evidence_says_so(tmp_path: Path) -> None:
    async def body(scene: Scene) -> None:
        task = json.dumps(
            {"agent": "coder", "task": "TASK: write the file a.txt with the word hello and deliver it"}
        )
        failed = '{"status":"error","summary_data":{"why":"no disk"},"artifact_pointers":{}}'
        scene.provider.queue(Calls(("c", "delegate", task)), Text(failed), Text("All done."))
        got = (await scene.chat(model="xclaw/orchestrator")).json
        assert got["choices"][0]["finish_reason"] == "stop"
        assert got["xclaw"]["outcome"] == "completed_unverified"
        assert "failed" in got["xclaw"]["reason"]

    at_the_wire(tmp_path, body)


def test_the_totals_of_a_tree_are_those_of_its_calls(tmp_path: Path) -> None:
    """U01."""

    async def body(scene: Scene) -> None:
        task = json.dumps(
            {"agent": "coder", "task": "TASK: look into the workspace and say how many files it has"}
        )
        result = '{"status":"success","summary_data":{"n":0},"artifact_pointers":{}}'
        scene.provider.queue(
            Calls(("c", "delegate", task), usage=(10, 5)),
            Calls(("d", "list_dir", "{}"), usage=(7, 3)),
            Calls(("e", "list_dir", '{"path": "."}'), usage=(7, 3)),
            Text(result, usage=(7, 3)),
            Text("None.", usage=(10, 5)),
        )
        usage = (await scene.chat(model="xclaw/orchestrator")).json["usage"]
        assert (usage["prompt_tokens"], usage["completion_tokens"]) == (41, 19)

    at_the_wire(tmp_path, body)
