"""One run of a script: what its interpreter says is taken for what a stranger says, and answered."""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import cast

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tools import ToolOutput
from xclaw.contracts.workflows import WorkflowNoted
from xclaw.patterns.render import failure_reason, pointer_paths, shorten
from xclaw.patterns.workflows.calls import AgentCalls
from xclaw.patterns.workflows.interpreter import Interpreter, started
from xclaw.patterns.workflows.settings import WorkflowSettings

MAX_NOTES = 500
MAX_MESSAGES = 20_000
NOTE_CHARACTERS = 2_000
SHOWN_FAILURES = 20
SHOWN_NOTES = 50


@dataclass(slots=True, eq=False)
class ScriptRun:
    calls: AgentCalls
    settings: WorkflowSettings
    _notes: list[str] = field(default_factory=list[str])
    _noted: int = 0

    async def to_end(self, script: str) -> ToolOutput:
        """What the script answers, and what became of its agents. Cancelling it ends interpreter and
        agents."""
        try:
            async with asyncio.timeout(self.settings.timeout_s):
                async with started(script, self.settings) as interpreter:
                    said = await self._conversation(interpreter)
        except TimeoutError:
            said = {"failed": f"it took longer than {self.settings.timeout_s:g} s and was stopped"}
        return self._report(said)

    async def _conversation(self, interpreter: Interpreter) -> Mapping[str, object]:
        """Answer until it has ended; its last word. What still works then is ended."""
        try:
            async with asyncio.TaskGroup() as group:
                working: set[asyncio.Task[None]] = set()
                try:
                    return await self._last_words(interpreter, group, working)
                finally:
                    for task in working:
                        task.cancel()
        except ExceptionGroup as failures:
            raise failures.exceptions[0] from None

    async def _last_words(
        self, interpreter: Interpreter, group: asyncio.TaskGroup, working: set[asyncio.Task[None]]
    ) -> Mapping[str, object]:
        for _ in range(MAX_MESSAGES):
            try:
                said = await interpreter.receive()
                await asyncio.sleep(0)  # others work too, however fast it talks
                if said is None:
                    return {"failed": await interpreter.how_it_ended()}
                if "call" in said:
                    task = group.create_task(self._answer(interpreter, said))
                    working.add(task)
                    task.add_done_callback(working.discard)
                elif (last := self._last_word(said)) is not None:
                    return last
            except ToolFailed as failure:
                return {"failed": str(failure)}
        return {"failed": f"it said more than {MAX_MESSAGES} things"}

    async def _answer(self, interpreter: Interpreter, said: Mapping[str, object]) -> None:
        answer = await self.calls.answer(said)
        with contextlib.suppress(ToolFailed):  # it does not listen: its own last word is awaited
            interpreter.send({"reply": said["call"], **answer})

    def _last_word(self, said: Mapping[str, object]) -> Mapping[str, object] | None:
        match said:
            case {"phase": str(name)}:
                self.calls.phase = name[:200]
                self._note("phase", name)
            case {"log": str(text)}:
                self._note("log", text)
            case {"violation": str(event)}:
                return {"failed": f"it was killed: it reached for {event[:100]}, which a workflow has not"}
            case {"done": _} | {"failed": _} | {"refused": _}:
                return said
            case _:
                raise ToolFailed("the workflow's interpreter said something that nobody understands")
        return None

    def _note(self, what: str, text: str) -> None:
        if len(self._notes) >= MAX_NOTES or self._noted > self.settings.output_chars:
            return
        text = shorten(text, NOTE_CHARACTERS)
        self._noted += len(text)
        self._notes.append(f"phase: {text}" if what == "phase" else text)
        calls = self.calls
        calls.context.record(
            WorkflowNoted(
                calls.context.call_id,
                "phase" if what == "phase" else "log",
                text,
                "" if what == "phase" else calls.phase,
            )
        )

    def _report(self, said: Mapping[str, object]) -> ToolOutput:
        """JSON, the largest last, so that a cut hides nothing else."""
        calls = self.calls
        failed = said.get("failed", said.get("refused"))
        output = str(said.get("done", ""))
        if len(output) > self.settings.output_chars:
            failed = f"its output has {len(output):,} characters; at most {self.settings.output_chars:,} are possible"
            output = ""
        record: dict[str, object] = {
            "status": "success" if failed is None else "error",
            "workflow_run": calls.context.run_id,
            "agents_started": calls.allowance.started,
            "agents_reused": calls.reused,
        }
        if failed is not None:
            record["reason"] = shorten(str(failed), NOTE_CHARACTERS)
        bad = [ended for ended in calls.ended if not ended.result.succeeded]
        if bad:
            record["failed_agents"] = [
                {"agent": ended.agent, "phase": ended.phase, "reason": failure_reason(ended.result)[:300]}
                for ended in bad[:SHOWN_FAILURES]
            ]
        record["artifact_pointers"] = {
            f"{number}:{ended.agent}:{name}": path
            for number, ended in enumerate(calls.ended, start=1)
            for name, path in pointer_paths(ended.result.pointers).items()
        }
        if self._notes:
            record["log"] = [shorten(note, 300) for note in self._notes[-SHOWN_NOTES:]]
        record["result"] = _value(output)
        return ToolOutput(json.dumps(record, ensure_ascii=False), ok=failed is None)


def _value(output: str) -> object:
    try:
        return cast("object", json.loads(output)) if output[:1] in ("{", "[") else output
    except (ValueError, RecursionError):
        return output
