"""Routes for sessions: see them, name them, take them along, end what runs in them, delete them."""

from typing import Annotated

import msgspec
from starlette.responses import StreamingResponse

from xclaw.gateway.channels.api_files import attachment
from xclaw.gateway.channels.api_route import MAX_LIST, AnyRoute, ApiRoute, Call, Nothing, Whose
from xclaw.gateway.desk import MAX_TITLE, Resident, SessionSummary, SessionView
from xclaw.gateway.export import ExportFormat

MARKDOWN, JSON_LINES = "text/markdown", "application/jsonl"
CANCELLED = "cancelled by the user"

Limit = Annotated[int, msgspec.Meta(ge=1, le=MAX_LIST)]
Reason = Annotated[str, msgspec.Meta(max_length=500)]


class SessionsQuery(Whose, frozen=True, kw_only=True):
    limit: Limit = 100
    before: Annotated[
        float | None,
        msgspec.Meta(description="Used before that time: the `used_at` of the last one of a page."),
    ] = None


class SessionQuery(Whose, frozen=True, kw_only=True):
    runs: Annotated[Limit, msgspec.Meta(description="How many of its runs, the newest first.")] = 100


class ExportQuery(Whose, frozen=True, kw_only=True):
    format: ExportFormat = "markdown"


class RenameBody(msgspec.Struct, frozen=True):
    title: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_TITLE)]


class CancelBody(msgspec.Struct, frozen=True):
    """Why."""

    reason: Reason = CANCELLED


class CancelledRuns(msgspec.Struct, frozen=True):
    """How many runs ended by it. What waited was dropped."""

    runs: int


async def list_sessions(call: Call[Nothing, SessionsQuery]) -> tuple[SessionSummary, ...]:
    return await call.desk.list(call.user, limit=call.query.limit, before=call.query.before)


async def show_session(call: Call[Nothing, SessionQuery]) -> SessionView:
    return await call.desk.show(call.key, runs=call.query.runs)


async def rename_session(call: Call[RenameBody, Whose]) -> SessionView:
    return await call.desk.rename(call.key, call.body.title)


async def delete_session(call: Call[Nothing, Whose]) -> None:
    key = call.key
    await call.desk.delete(key)
    call.gateway.forget(call.path["session"], user=call.user)


async def export_session(call: Call[Nothing, ExportQuery]) -> StreamingResponse:
    form = call.query.format
    pieces = await call.desk.export(call.key, form)
    suffix, media_type = (".md", MARKDOWN) if form == "markdown" else (".jsonl", JSON_LINES)
    return StreamingResponse(
        pieces, headers=attachment(call.path["session"] + suffix), media_type=f"{media_type}; charset=utf-8"
    )


async def cancel_session(call: Call[CancelBody, Whose]) -> CancelledRuns:
    await call.desk.show(call.key, runs=1)
    reason = call.body.reason or CANCELLED
    return CancelledRuns(await call.gateway.cancel(call.path["session"], reason, user=call.user))


async def show_team(call: Call[Nothing, Whose]) -> tuple[Resident, ...]:
    return await call.desk.team(call.key)


async def reset_resident(call: Call[Nothing, Whose]) -> None:
    await call.desk.reset(call.key, call.path["agent"])


SESSIONS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/sessions",
        list_sessions,
        "sessions",
        "The sessions, the latest used first",
        tuple[SessionSummary, ...],
        query=SessionsQuery,
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}",
        show_session,
        "sessions",
        "A session and its runs",
        SessionView,
        query=SessionQuery,
    ),
    ApiRoute(
        "PATCH",
        "/sessions/{session}",
        rename_session,
        "sessions",
        "Give a session another title",
        SessionView,
        body=RenameBody,
        query=Whose,
    ),
    ApiRoute(
        "DELETE",
        "/sessions/{session}",
        delete_session,
        "sessions",
        "Delete a session, its residents and all that was said",
        status=204,
        query=Whose,
        refusals=(409,),
        details="Delivered files stay. 409 while a run goes on.",
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}/export",
        export_session,
        "sessions",
        "A session as a file",
        str,
        media_types=(MARKDOWN, JSON_LINES),
        query=ExportQuery,
    ),
    ApiRoute(
        "POST",
        "/sessions/{session}/cancel",
        cancel_session,
        "sessions",
        "End what runs in a session, and drop what waits",
        CancelledRuns,
        body=CancelBody,
        query=Whose,
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}/team",
        show_team,
        "team",
        "The experts that were asked in a session, and what they remember",
        tuple[Resident, ...],
        query=Whose,
    ),
    ApiRoute(
        "DELETE",
        "/sessions/{session}/team/{agent}",
        reset_resident,
        "team",
        "Let an expert forget",
        status=204,
        query=Whose,
        refusals=(409,),
    ),
)
