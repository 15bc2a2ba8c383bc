"""A plan runs as wide as its dependencies allow, and no wider (SPEC H5): told by events, not by time."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import cast

from behaviour.coordinated import QUESTIONS, planned, settings_of
from behaviour.harness import Seen, follow
from xclaw.app import open_app
from xclaw.contracts.events import ChildEnded, RunStarted
from xclaw.models.settings import ProviderSettings
from xclaw.runtime.runs import RunRequest
from xclaw.testing import FakeProvider
from xclaw.testing.fake_replies import Calls, Raw, Text, Until, stream_of

RESULT = '{"status": "success", "summary_data": {"done": true}, "artifact_pointers": {}}'
CHECK = "true"
PLAN = [planned("a"), planned("b"), planned("c"), planned("last", depends_on=["a", "b", "c"])]


def call(name: str, **arguments: object) -> Calls:
    return Calls(("c", name, json.dumps(arguments)))


class Workers:
    """Each of the three that may run at once answers only when all three have been asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.all_asked = asyncio.Event()

    def answer(self, body: dict[str, object]) -> Calls | Text | Raw:
        messages = cast("list[dict[str, object]]", body["messages"])
        text = "\n".join(str(m["content"]) for m in messages if m["role"] != "system")
        if "[Task workspace:" not in text:
            done = sum(m["role"] == "tool" for m in messages)
            steps = [
                call("research", tasks=QUESTIONS),
                call("write_plan", plan=PLAN),
                call("implement"),
                call("verify", checks=[{"command": CHECK, "why": "x"}]),
                Text("done"),
            ]
            return steps[done]
        if "Run each of these commands" in text:
            return Text(RESULT) if "[exit code 0]" in text else call("shell", command=CHECK)
        task = next((t for t in ("a", "b", "c", "last") if f"the module {t}.py" in text), "")
        if not task:
            return Text(RESULT)
        self.asked.append(task)
        if task == "last":
            return Text(RESULT)
        if {"a", "b", "c"} <= set(self.asked):
            self.all_asked.set()
        return Raw(Until(self.all_asked), stream_of(Text(RESULT), True))


def test_tasks_that_do_not_depend_on_one_another_run_at_once_and_the_last_waits_for_all(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), FakeProvider() as provider:
            workers = Workers()
            provider.answer_with(workers.answer)
            settings = settings_of(tmp_path, "openai:m")
            providers = {"openai": ProviderSettings(base_url=provider.url, api_key="k")}
            settings = replace(settings, models=replace(settings.models, providers=providers))
            async with open_app(settings) as app:
                handle = await app.runs.start(RunRequest("Build it.", "s", agent="coordinator"))
                seen = await follow(handle)
        assert seen.result.outcome == "success", seen.result
        assert sorted(workers.asked[:3]) == ["a", "b", "c"]
        assert workers.asked[3:] == ["last"]
        assert _started_before_last(seen) == 3

    asyncio.run(main())


def _started_before_last(seen: Seen) -> int:
    """How many of the plan's tasks had ended when the last one began."""
    ended = 0
    for entry in seen.entries:
        if isinstance(entry.event, ChildEnded) and entry.event.result.text == RESULT:
            ended += 1
        if isinstance(entry.event, RunStarted) and "module last.py" in entry.event.input:
            return ended - 1  # the researcher
    return -1
