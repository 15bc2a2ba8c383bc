"""Every route of the HTTP API."""

from xclaw.gateway.channels import api_agents, api_messages, api_runs, api_sessions, api_streams
from xclaw.gateway.channels.api_agents import AgentAnswer
from xclaw.gateway.channels.api_files import BINARY
from xclaw.gateway.channels.api_messages import Accepted, MessageAnswer, MessageBody, RunBody
from xclaw.gateway.channels.api_route import AnyRoute, ApiRoute, Whose
from xclaw.gateway.channels.api_runs import ArtifactQuery, CancelledRun, RunAnswer
from xclaw.gateway.channels.api_sessions import (
    JSON_LINES,
    MARKDOWN,
    CancelBody,
    CancelledRuns,
    ExportQuery,
    RenameBody,
    SessionQuery,
    SessionsQuery,
)
from xclaw.gateway.channels.api_streams import EventsQuery
from xclaw.gateway.channels.sse import MEDIA_TYPE as EVENTS
from xclaw.gateway.desk import Resident, SessionSummary, SessionView
from xclaw.gateway.wire import EventFrame

_EVENTS = (
    "Server-sent events, named like the frames of the WebSocket: `event`, `delta`, `reply`, `error`; `data` "
    "is the frame. Stored ones have an `id`: sent back as `Last-Event-ID`, it brings everything after it, "
    "once each, in order."
)
_LAST_EVENT_ID = (("Last-Event-ID", "The id of the last event that came."),)
_IDEMPOTENCY_KEY = (("Idempotency-Key", "Another way to give a `client_id`."),)

MESSAGES: tuple[AnyRoute, ...] = (
    ApiRoute(
        "POST",
        "/sessions/{session}/messages",
        api_messages.say,
        "messages",
        "Say something to a session's agents",
        Accepted,
        202,
        body=MessageBody,
        query=Whose,
        refusals=(503,),
        headers=_IDEMPOTENCY_KEY,
        details="202 once the message is durable; it will be answered whatever happens to the gateway.",
    ),
    ApiRoute(
        "POST",
        "/runs",
        api_messages.start_run,
        "messages",
        "Say something in a session of its own",
        Accepted,
        202,
        body=RunBody,
        query=Whose,
        refusals=(503,),
        headers=_IDEMPOTENCY_KEY,
    ),
    ApiRoute(
        "GET",
        "/messages/{request}",
        api_messages.show_message,
        "messages",
        "What became of a message",
        MessageAnswer,
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "DELETE",
        "/messages/{request}",
        api_messages.drop_message,
        "messages",
        "Take back a message that waits",
        status=204,
        query=Whose,
        refusals=(404, 409),
    ),
)

SESSIONS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/sessions",
        api_sessions.list_sessions,
        "sessions",
        "The sessions, the latest used first",
        tuple[SessionSummary, ...],
        query=SessionsQuery,
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}",
        api_sessions.show_session,
        "sessions",
        "A session and its runs",
        SessionView,
        query=SessionQuery,
        refusals=(404,),
    ),
    ApiRoute(
        "PATCH",
        "/sessions/{session}",
        api_sessions.rename_session,
        "sessions",
        "Give a session another title",
        SessionView,
        body=RenameBody,
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "DELETE",
        "/sessions/{session}",
        api_sessions.delete_session,
        "sessions",
        "Delete a session, its residents and all that was said",
        status=204,
        query=Whose,
        refusals=(404, 409),
        details="Delivered files stay. 409 while a run goes on.",
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}/events",
        api_streams.session_events,
        "sessions",
        "What happens in a session",
        str,
        media_types=(EVENTS,),
        query=EventsQuery,
        headers=_LAST_EVENT_ID,
        details=_EVENTS + " Without `after`: from now on.",
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}/export",
        api_sessions.export_session,
        "sessions",
        "A session as a file",
        str,
        media_types=(MARKDOWN, JSON_LINES),
        query=ExportQuery,
        refusals=(404,),
    ),
    ApiRoute(
        "POST",
        "/sessions/{session}/cancel",
        api_sessions.cancel_session,
        "sessions",
        "End what runs in a session, and drop what waits",
        CancelledRuns,
        body=CancelBody,
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "GET",
        "/sessions/{session}/team",
        api_sessions.show_team,
        "team",
        "The experts that were asked in a session, and what they remember",
        tuple[Resident, ...],
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "DELETE",
        "/sessions/{session}/team/{agent}",
        api_sessions.reset_resident,
        "team",
        "Let an expert forget",
        status=204,
        query=Whose,
        refusals=(404, 409),
    ),
)

RUNS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/runs/{run}",
        api_runs.show_run,
        "runs",
        "A run: how it ended, what it cost, what it delivered",
        RunAnswer,
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/events",
        api_streams.run_events,
        "runs",
        "What happens in the tree of a run, up to its reply",
        str,
        media_types=(EVENTS,),
        query=EventsQuery,
        headers=_LAST_EVENT_ID,
        refusals=(204, 404),
        details=_EVENTS + " Without `after`: from its beginning. 204 when it has ended and nothing is left.",
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/entries",
        api_runs.list_entries,
        "runs",
        "Everything the journal has of a run's tree, what models saw included",
        tuple[EventFrame, ...],
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "POST",
        "/runs/{run}/cancel",
        api_runs.cancel_run,
        "runs",
        "End a run and everything below it",
        CancelledRun,
        body=CancelBody,
        query=Whose,
        refusals=(404,),
    ),
    ApiRoute(
        "GET",
        "/runs/{run}/artifacts/{name}",
        api_runs.fetch_artifact,
        "artifacts",
        "A file that a run, or one below it, delivered",
        bytes,
        media_types=(BINARY,),
        query=ArtifactQuery,
        refusals=(404,),
        details="Only as it was delivered: a file that was changed since is not found.",
    ),
)

AGENTS: tuple[AnyRoute, ...] = (
    ApiRoute(
        "GET",
        "/agents",
        api_agents.list_agents,
        "agents",
        "Who can be asked",
        tuple[AgentAnswer, ...],
    ),
)

ROUTES: tuple[AnyRoute, ...] = (*MESSAGES, *SESSIONS, *RUNS, *AGENTS)
