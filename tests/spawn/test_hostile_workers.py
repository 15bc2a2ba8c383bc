"""A worker that lies, breaks the line or breaks down: its run has failed, and nothing that it said counts."""

import asyncio
import re
from pathlib import Path

import pytest
from forked_scene import Wishes, call, ended, forked, forked_scene, local, results, turns

from xclaw.contracts.events import Entry, RunEnded
from xclaw.contracts.models import ModelProfile, ModelRequest
from xclaw.runtime.runs import RunRequest
from xclaw.testing.script_files import ScriptedReply

HERE = Path(__file__).parent
NAMES = re.findall(r'^        "([^"]+)": lambda', (HERE / "hostile_worker.py").read_text(), re.MULTILINE)
SAID = {
    "too long": "a line longer than",
    "silent exit": "exit code 7",
    "segfault": "SIGSEGV",
    "another run": "not its own",
    "another session": "not its own",
    "another root": "not its own",
    "its parent's run": "not its own",
    "a gap": "does not follow",
    "an old number": "does not follow",
    "its own end": "the runtime's to record",
    "a cheaper answer": "had not been given",
    "an unpaid answer": "had not been given",
    "a free failure": "had not made",
    "speaks as the user": "in the user's name",
    "writes under a message's id": "in another's name",
    "writes as the user": "neither its child nor its parent",
    "writes as the runtime": "neither its child nor its parent",
    "writes as somebody else": "in another's name",
    "gives its parent a turn": "in another's name",
    "writes a book": "more than 20000 characters",
    "reads its own mail as the user's": "not for it",
    "answers itself": "answered a question itself",
    "asks in another's name": "in another's name",
    "starts without asking": "without asking",
    "starts another than the runtime would": "otherwise than the runtime would",
    "starts one with every right": "otherwise than the runtime would",
    "starts one in another session": "in another's place",
    "starts with less isolation": "another isolation",
    "hands on what it has not": "does not have",
    "delivers a system file": "not its own",
}
"""Why some were ended, so that none is for another reason."""
ENDED = ("silent exit", "segfault", "half a line")
"""What ends by itself: the others have to be ended."""
PRICED = ModelProfile(input_usd_per_million=1.0, output_usd_per_million=2.0, scripted=True)


async def answer(request: ModelRequest) -> str | ScriptedReply:
    if request.agent == "boss":
        return "Over." if turns(request) else call("delegate", agent="victim", task="Do the work")
    return "an answer that has to be paid for"


@pytest.mark.parametrize("name", NAMES)
def test_a_worker_that_misbehaves_has_failed_and_nothing_that_it_said_counts(
    tmp_path: Path, name: str
) -> None:
    async def main() -> list[Entry]:
        boss = local(forked("boss", "delegate", orchestrator=True))
        environment = {"XCLAW_HOSTILE": name, "PYTHONPATH": str(HERE)}
        wishes = Wishes(
            [boss, forked("victim", "shell")],
            environment=environment,
            module="hostile_worker",
            profile=PRICED,
        )
        async with forked_scene(tmp_path, answer, wishes) as scene:
            entries = await ended(scene, RunRequest("go", "s", "boss"))
            assert len(await scene.journal.runs()) == 2
            assert await scene.runs.approvals.pending() == []
            assert await scene.services.approvals.granted("s", "victim") == ()
            return entries

    entries = asyncio.run(main())
    found = results(entries)
    assert found["victim"].outcome == "error"
    expected = "the worker's process" if name in ENDED else "the worker"
    assert expected in found["victim"].reason
    assert SAID.get(name, "") in found["victim"].reason
    assert found["victim"].pointers == {}
    assert found["boss"].text == "Over."
    assert {e.address.session_id.split(":")[0] for e in entries} == {"s"}
    assert sum(isinstance(e.event, RunEnded) for e in entries) == len(found) == 2


def test_there_are_as_many_ways_as_were_thought_of() -> None:
    assert len(NAMES) > 40
