"""Routes for runs: what became of one, everything it did, its end before its time."""

from collections.abc import AsyncIterator, Sequence
from typing import Annotated

import msgspec
from starlette.responses import StreamingResponse

from xclaw.contracts.errors import UsageError
from xclaw.contracts.events import Entry
from xclaw.contracts.journal import RunRow
from xclaw.contracts.results import Outcome
from xclaw.contracts.usage import Usage
from xclaw.gateway.artifacts import Altered, Artifact, artifacts_of, open_artifact
from xclaw.gateway.channels.api_errors import ApiRefusal
from xclaw.gateway.channels.api_files import BINARY, Download
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Call, Name, Nothing, Whose
from xclaw.gateway.channels.api_sessions import CANCELLED, CancelBody
from xclaw.gateway.frames import event_frame
from xclaw.gateway.wire import EventFrame
from xclaw.runtime.tree import NodeEnd
from xclaw.traces.tree import TraceNode, trace_trees


class ArtifactAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A delivered file. Several may have the same name: `sha256` tells them apart."""

    name: str
    path: str
    sha256: str
    size: int
    version: int
    agent: str


class RunAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """A run. `usage`, `cost_usd` and `artifacts` are those of everything below it, too."""

    run: str
    root: str
    parent: str
    session: str
    agent: str
    title: str
    started_at: float
    ended_at: float | None
    outcome: Outcome | None
    text: str
    reason: str
    usage: Usage
    cost_usd: float | None
    """Null: the price of some of it is unknown."""
    artifacts: tuple[ArtifactAnswer, ...]


class CancelledRun(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, by every run that was below it, children first."""

    ends: tuple[NodeEnd, ...]


class ArtifactQuery(Whose, frozen=True, kw_only=True):
    version: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] | None = None
    """Without it, the newest one."""
    sha256: Annotated[
        Name, msgspec.Meta(description="Its first digits: tells files of the same name apart.")
    ] = ""


async def show_run(call: Call[Nothing, Whose]) -> RunAnswer:
    row = await own_run(call)
    node, entries = await _below(call, row)
    session = await session_of(call, row)
    end = (node.text, node.reason) if node else ("", "")
    return RunAnswer(
        run=row.run_id,
        root=row.root_id,
        parent=row.parent_id,
        session=session,
        agent=row.agent,
        title=row.title,
        started_at=row.started_at,
        ended_at=row.ended_at,
        outcome=row.outcome,
        text=end[0],
        reason=end[1],
        usage=node.total.usage if node else Usage(),
        cost_usd=node.total.cost_usd if node else None,
        artifacts=tuple(map(_artifact_answer, artifacts_of(entries))),
    )


async def list_entries(call: Call[Nothing, Whose]) -> StreamingResponse:
    row = await own_run(call)
    session = await session_of(call, row)
    root = await call.gateway.journal.run_row(row.root_id)
    entries = await call.gateway.journal.read_tree(row.root_id)
    pieces = _json_array(entries, root.message_id if root else "", session)
    return StreamingResponse(pieces, media_type="application/json")


async def cancel_run(call: Call[CancelBody, Whose]) -> CancelledRun:
    row = await own_run(call)
    reason = call.body.reason or CANCELLED
    return CancelledRun(ends=tuple(await call.gateway.cancel_run(row.run_id, reason, user=call.user)))


async def fetch_artifact(call: Call[Nothing, ArtifactQuery]) -> Download:
    _, entries = await _below(call, await own_run(call))
    artifact = _wanted(artifacts_of(entries), call.path["name"], call.query)
    try:
        delivered = await open_artifact(artifact.pointer)
    except Altered as altered:
        raise ApiRefusal("not_found", f"{artifact.name!r} cannot be sent: {altered}") from None
    return Download(delivered, artifact.name, artifact.pointer.sha256)


async def own_run(call: Call[msgspec.Struct, Whose]) -> RunRow:
    """The run that `{run}` names. Raises `ApiRefusal` alike for none and for another user's."""
    try:
        return await call.gateway.run_row(call.path["run"], user=call.user)
    except UsageError as error:
        raise ApiRefusal("not_found", str(error)) from None


async def session_of(call: Call[msgspec.Struct, Whose], row: RunRow) -> str:
    """What the client calls the session that a run's tree belongs to."""
    root = row if row.root_id == row.run_id else await call.gateway.journal.run_row(row.root_id)
    session = await call.gateway.sessions.session(root.session_id) if root else None
    return session.name if session else ""


async def _below(call: Call[msgspec.Struct, Whose], row: RunRow) -> tuple[TraceNode | None, list[Entry]]:
    """A run as a trace shows it, and the entries of it and everything below it."""
    entries = await call.gateway.journal.read_tree(row.root_id)
    nodes = (node for tree in trace_trees(entries) for node in tree.walk())
    node = next((node for node in nodes if node.run_id == row.run_id), None)
    if node is None:
        return None, []
    wanted = {below.run_id for below in node.walk()}
    return node, [entry for entry in entries if entry.address.run_id in wanted]


def _wanted(artifacts: Sequence[Artifact], name: str, query: ArtifactQuery) -> Artifact:
    """The newest that fits. Raises `ApiRefusal`."""
    for artifact in reversed(artifacts):
        pointer = artifact.pointer
        if (
            artifact.name == name
            and query.version in (None, pointer.version)
            and pointer.sha256.startswith(query.sha256)
        ):
            return artifact
    raise ApiRefusal(
        "not_found", f"this run delivered no such {name[:80]!r}; its `artifacts` list what it did"
    )


def _artifact_answer(artifact: Artifact) -> ArtifactAnswer:
    pointer = artifact.pointer
    return ArtifactAnswer(
        name=artifact.name,
        path=pointer.path,
        sha256=pointer.sha256,
        size=pointer.size,
        version=pointer.version,
        agent=pointer.agent,
    )


async def _json_array(entries: Sequence[Entry], request: str, session: str) -> AsyncIterator[bytes]:
    """One entry at a time: a tree may be large, and its JSON need not be whole in memory too."""
    yield b"["
    for number, entry in enumerate(entries):
        frame = event_frame(entry, request, session, complete=True)
        yield (b",\n" if number else b"") + msgspec.json.encode(frame)
    yield b"]"


RUNS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/runs/{run}",
        show_run,
        "runs",
        "A run: how it ended, what it cost, what it delivered",
        RunAnswer,
        query=Whose,
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/entries",
        list_entries,
        "runs",
        "Everything the journal has of a run's tree, what models saw included",
        tuple[EventFrame, ...],
        query=Whose,
    ),
    ApiRoute(
        "POST",
        "/runs/{run}/cancel",
        cancel_run,
        "runs",
        "End a run and everything below it",
        CancelledRun,
        body=CancelBody,
        query=Whose,
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/artifacts/{name}",
        fetch_artifact,
        "artifacts",
        "A file that a run, or one below it, delivered",
        bytes,
        media_types=(BINARY,),
        query=ArtifactQuery,
        details="Only as it was delivered: a file that was changed since is not found.",
    ),
)
