"""workflow: orchestration as a short Python script, run with no authority of its own."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import cast

from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.models import ToolSpec
from xclaw.contracts.results import Result
from xclaw.contracts.tools import ToolContext, ToolOutput
from xclaw.patterns.arguments import optional_text, text_argument
from xclaw.patterns.inputs import FindArtifact
from xclaw.patterns.parameters import optional
from xclaw.patterns.workflows.allowance import Allowance
from xclaw.patterns.workflows.calls import AgentCalls
from xclaw.patterns.workflows.interpreter import CHECK_S, started
from xclaw.patterns.workflows.lockdown import has_filter
from xclaw.patterns.workflows.quote import EXAMPLE, Quote, quote_of
from xclaw.patterns.workflows.session import ScriptRun
from xclaw.patterns.workflows.settings import WorkflowSettings

FindEarlier = Callable[[str, str], Awaitable[Mapping[str, Result]]]
"""The successful agents of the workflows of a run of this session, by key. Raises `ToolFailed`."""

_DESCRIPTION = """\
Run a short Python script that hands work to agents: for many similar tasks, loops, branches on results. \
Functions: agent(name, task, inputs=None, schema=None) waits and answers a result with .ok .text .data \
.artifacts .reason; parallel([agent(...) for x in xs]) runs what stands in the list at once; \
pipeline([("agent", "task"), ("agent", "... {{input}}")]); phase("name"); log("text"). Plain Python \
otherwise, with json, re, math; no files, network, classes or other imports. The last expression, or \
`result`, is the answer. Tasks must be self-contained. The user is asked first."""


def containment() -> str:
    """What holds a script on this machine, for whoever allows one."""
    if has_filter():
        return "no files, network or processes (a filter of system calls holds it)"
    return (
        "no files, network or processes by Python's own means only: there is no filter of system calls here"
    )


class WorkflowTool:
    """Runs a script in an interpreter of its own. Cancelling ends interpreter and agents."""

    replayable: bool = True
    """The same call finds the agents that it had started, by what they were asked."""
    timeout_s: float | None = None

    def __init__(
        self, find_artifact: FindArtifact, find_earlier: FindEarlier, settings: WorkflowSettings
    ) -> None:
        self._find_artifact = find_artifact
        self._find_earlier = find_earlier
        self._settings = settings
        self.spec = ToolSpec(
            "workflow",
            _DESCRIPTION,
            {
                "type": "object",
                "properties": {
                    "script": {"type": "string", "description": "The script"},
                    "quote": optional(
                        ["object", "string"],
                        f"What it may use at most, e.g. {EXAMPLE}; also max_tokens, agents. Needed where the "
                        "script does not show how many agents it starts",
                    ),
                    "resume": optional(
                        ["string"],
                        "workflow_run of an earlier workflow of this conversation: what was asked the same there "
                        "is taken from it",
                    ),
                },
                "required": ["script"],
            },
            effect="acts",
        )

    async def quote(self, arguments: Mapping[str, object], left: str) -> str:
        """What a person is told before allowing it. Raises `ToolFailed` for a script that cannot run."""
        return (await self._quoted(arguments)).told(left, containment())

    async def run(self, arguments: Mapping[str, object], context: ToolContext) -> ToolOutput:
        quote = await self._quoted(arguments)
        resume = optional_text(arguments, "resume")
        earlier: Mapping[str, Result] = {}
        if resume:
            earlier = await self._find_earlier(resume.strip(), context.session_id)
        calls = AgentCalls(context, self._find_artifact, Allowance(quote), earlier)
        return await ScriptRun(calls, self._settings).to_end(_script(arguments, self._settings))

    async def _quoted(self, arguments: Mapping[str, object]) -> Quote:
        return await quoted(_script(arguments, self._settings), arguments.get("quote"), self._settings)


async def quoted(script: str, quote: object, settings: WorkflowSettings) -> Quote:
    """Check a script without running it. Raises `ToolFailed` that says which line may not be."""
    try:
        async with asyncio.timeout(CHECK_S), started(script, settings, only_check=True) as interpreter:
            said = await interpreter.receive()
            if said is None:
                raise ToolFailed(f"the script could not be checked: {await interpreter.how_it_ended()}")
    except TimeoutError:
        raise ToolFailed(f"the script could not be checked within {CHECK_S:g} s") from None
    if "checked" not in said:
        reason = str(said.get("refused", said.get("violation", "it cannot be read")))[:2_000]
        raise ToolFailed(f"the script cannot run: {reason}")
    counted = cast("Mapping[str, object]", said["checked"])
    most, agents = counted.get("most"), counted.get("agents")
    named = tuple(map(str, cast("list[object]", agents))) if isinstance(agents, list) else None
    return quote_of(quote, most if isinstance(most, int) else None, named, settings)


def _script(arguments: Mapping[str, object], settings: WorkflowSettings) -> str:
    script = text_argument(arguments, "script", '\'agent("coder", "...").text\'')
    if len(script) > settings.script_chars:
        raise ToolFailed(
            f"the script has {len(script):,} characters; at most {settings.script_chars:,} are possible"
        )
    return script
