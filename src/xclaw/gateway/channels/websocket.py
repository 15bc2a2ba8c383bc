"""The WebSocket channel: frames of one client in, what happens in the sessions that it watches out.

One task reads; each watched session has one that writes, at the pace at which the client reads. When
the connection ends, all of them do; runs go on.
"""

import asyncio
import logging
import secrets
import time
from contextlib import suppress
from importlib.metadata import version
from typing import assert_never

from starlette.types import Receive, Scope, Send

from xclaw.contracts.approvals import Answer as ApprovalAnswer
from xclaw.contracts.channels import Wishes
from xclaw.contracts.errors import NotAllowed, UsageError
from xclaw.contracts.messages import Message
from xclaw.gateway.channels.line import LINE, Line
from xclaw.gateway.channels.sending import ClientGone, Sender
from xclaw.gateway.frames import frame_of
from xclaw.gateway.gateway import Gateway
from xclaw.gateway.guards import identity_of
from xclaw.gateway.identity import Identity
from xclaw.gateway.identity import Scope as Right
from xclaw.gateway.names import conversation_key
from xclaw.gateway.settings import GatewaySettings
from xclaw.gateway.tokens import TokenBook
from xclaw.gateway.wire import (
    WIRE_VERSION,
    Answer,
    Answered,
    BadFrame,
    Cancel,
    Cancelled,
    ClientFrame,
    Done,
    ErrorFrame,
    Hello,
    Ping,
    Pong,
    Say,
    SayAccepted,
    Unwatch,
    Watch,
    Watching,
    decode_client,
)

logger = logging.getLogger(__name__)

MAX_WATCHED = 100
"""Sessions that one connection watches at a time."""
MAX_BAD_FRAMES = 20
"""So many in a row are no mistake."""
TOKEN_CHECK_S = 5.0
NOT_TEXT, POLICY, UNAUTHORIZED = 1003, 1008, 4401
"""Close codes."""
INTERNAL = "something unexpected happened; the gateway's log says what, under {}"


class WebSocketChannel:
    """The ASGI app of a WebSocket route. Stands behind `Guards`, and on a server with `LineProtocol`."""

    def __init__(self, gateway: Gateway, settings: GatewaySettings, tokens: TokenBook) -> None:
        self._gateway = gateway
        self._settings = settings
        self._tokens = tokens

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one connection until it ends."""
        extensions: dict[str, object] = scope["extensions"]
        headers: list[tuple[bytes, bytes]] = scope["headers"]
        line = extensions[LINE]
        assert isinstance(line, Line)
        identity = identity_of(scope)
        sender = Sender(send, line, self._settings.stall_s)
        channel = "web" if any(name == b"origin" for name, _ in headers) else "cli"
        connection = _Connection(self._gateway, self._tokens, identity, sender, channel)
        await receive()  # the request to connect
        try:
            await sender.accept()
            await sender.send(
                Hello(
                    v=WIRE_VERSION,
                    server=version("xclaw"),
                    user=identity.user,
                    scopes=tuple(sorted(identity.scopes)),
                    max_message_bytes=self._settings.max_message_bytes,
                )
            )
            with self._gateway.metrics.client(channel):
                await connection.serve(receive)
        except ClientGone:
            logger.debug("a client of %s is gone", identity.user)


class _Refused(UsageError):
    """A frame that is not carried out, with its code."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


class _Connection:
    """What one client asked for."""

    def __init__(
        self, gateway: Gateway, tokens: TokenBook, identity: Identity, sender: Sender, channel: str
    ) -> None:
        self._gateway = gateway
        self._tokens = tokens
        self._identity = identity
        self._user = identity.user
        self._sender = sender
        self._channel = channel
        """Browsers say which page opened the connection; who does not is a program of the user's."""
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._bad_frames = 0

    async def serve(self, receive: Receive) -> None:
        async with asyncio.TaskGroup() as group:
            check = group.create_task(self._check_token())
            try:
                await self._read(group, receive)
            finally:
                for task in (check, *self._watches.values()):
                    task.cancel()

    async def _read(self, group: asyncio.TaskGroup, receive: Receive) -> None:
        while True:
            received = await receive()
            if received["type"] == "websocket.disconnect":
                return
            if not self._still_welcome():
                continue  # the end of the connection is what comes next
            text = received.get("text")
            if text is None:
                self._sender.hang_up(NOT_TEXT, "frames are JSON text")
                continue
            try:
                await self._take(group, text)
            except ClientGone:
                return

    async def _take(self, group: asyncio.TaskGroup, text: str) -> None:
        try:
            frame = decode_client(text)
        except BadFrame as error:
            await self._bad(str(error))
            return
        self._bad_frames = 0
        try:
            await self._obey(group, frame)
        except UsageError as error:
            await self._refuse(frame, self._code(error, frame), str(error))
        except ClientGone:
            raise
        except Exception:
            mark = secrets.token_hex(4)
            logger.exception("a frame of %s failed [%s]", self._user, mark)
            await self._refuse(frame, "internal", INTERNAL.format(mark))

    async def _obey(self, group: asyncio.TaskGroup, frame: ClientFrame) -> None:
        needed: Right = "approve" if isinstance(frame, Answer) else "chat"
        if needed not in self._identity.scopes and not isinstance(frame, Ping):
            raise NotAllowed(f"this token's scopes do not allow it: {needed!r} is needed")
        match frame:
            case Watch():
                await self._watch(group, frame)
            case Unwatch():
                await self._unwatch(frame.session)
                await self._sender.send(Done(ref=frame.ref))
            case Say():
                await self._say(frame)
            case Cancel():
                await self._cancel(frame)
            case Answer():
                await self._answer(frame)
            case Ping():
                await self._sender.send(Pong(ref=frame.ref))
            case _:
                assert_never(frame)

    async def _say(self, frame: Say) -> None:
        message = Message("", frame.session, self._channel, frame.text, time.time())
        wishes = Wishes(frame.agent, frame.models, frame.limits, frame.manner, frame.client_id)
        accepted = await self._gateway.dispatch(message, wishes, user=self._user)
        await self._sender.send(
            SayAccepted(
                session=accepted.session_id,
                request=accepted.message_id,
                after=accepted.after,
                client_id=frame.client_id,
                waiting=accepted.waiting,
                duplicate=accepted.duplicate,
                ref=frame.ref,
            )
        )

    async def _cancel(self, frame: Cancel) -> None:
        if bool(frame.run) == bool(frame.session):
            raise _Refused("bad_request", "name either a session or a run to cancel")
        if frame.run:
            runs = await self._cancel_run(frame)
        else:
            runs = await self._gateway.cancel(frame.session, frame.reason, user=self._user)
        await self._sender.send(Cancelled(runs=runs, session=frame.session, ref=frame.ref))

    async def _cancel_run(self, frame: Cancel) -> int:
        try:
            row = await self._gateway.run_row(frame.run, user=self._user)
        except UsageError as error:
            raise _Refused("not_found", str(error)) from None
        return len(await self._gateway.cancel_run(row.run_id, frame.reason, user=self._user))

    async def _answer(self, frame: Answer) -> None:
        approvals = self._gateway.services.approvals
        approval = await approvals.approval(frame.approval)
        session = await self._gateway.sessions.session(approval.root_session_id) if approval else None
        if approval is None or session is None or session.user != self._user:
            raise _Refused("not_found", f"there is no approval {frame.approval[:80]!r}")
        if approval.status != "pending":
            raise _Refused("busy", "this approval waits no longer: it was answered, or its run has ended")
        answer = ApprovalAnswer(frame.decision, frame.reason, frame.arguments)
        try:
            await approvals.answer(frame.approval, answer, by=self._user)
        except UsageError as error:
            now = await approvals.approval(frame.approval)
            if now is None or now.status != "pending":  # somebody else was quicker
                raise _Refused("busy", str(error)) from None
            raise
        await self._sender.send(Answered(approval=frame.approval, ref=frame.ref))

    async def _watch(self, group: asyncio.TaskGroup, frame: Watch) -> None:
        conversation_key(frame.session, self._user)
        await self._unwatch(frame.session)
        if len(self._watches) >= MAX_WATCHED:
            raise _Refused(
                "bad_request", f"this connection watches {MAX_WATCHED} sessions already; leave one of them"
            )
        self._watches[frame.session] = group.create_task(self._follow(frame))

    async def _unwatch(self, session: str) -> None:
        """Nothing of the session is sent after this."""
        watch = self._watches.pop(session, None)
        if watch is not None:
            watch.cancel()
            await asyncio.wait((watch,))

    async def _follow(self, frame: Watch) -> None:
        """Write what happens in one session, until it is deleted or the gateway closes."""
        session = frame.session
        try:
            async with self._gateway.watch(session, frame.after, user=self._user) as outlet:
                watching = Watching(
                    session=session, after=outlet.after, running=outlet.running, ref=frame.ref
                )
                await self._sender.send(watching)
                async for outgoing in outlet:
                    await self._sender.send(frame_of(outgoing))
            if not self._gateway.closing:
                raise _Refused("not_found", f"session {session!r} was deleted; this watch has ended")
        except UsageError as error:
            await self._refuse(frame, self._code(error, frame), str(error))
        except ClientGone:
            return  # the reader notices, too
        except Exception:
            mark = secrets.token_hex(4)
            logger.exception("a watch of %s failed [%s]", self._user, mark)
            await self._refuse(frame, "internal", INTERNAL.format(mark))
        finally:
            if self._watches.get(session) is asyncio.current_task():
                del self._watches[session]

    def _code(self, refusal: UsageError, frame: ClientFrame) -> str:
        match refusal:
            case _Refused():
                return refusal.code
            case NotAllowed():
                return "not_allowed"
            case _:
                return "closing" if isinstance(frame, Say) and self._gateway.closing else "refused"

    async def _check_token(self) -> None:
        while True:
            await asyncio.sleep(TOKEN_CHECK_S)
            if not self._still_welcome():
                return

    def _still_welcome(self) -> bool:
        try:
            welcome = self._tokens.holds(self._identity)
        except UsageError as error:
            logger.error("tokens cannot be checked: %s", error)
            welcome = False
        if not welcome:
            self._sender.hang_up(UNAUTHORIZED, "this token was revoked or has expired")
        return welcome

    async def _bad(self, why: str) -> None:
        self._bad_frames += 1
        await self._sender.send(ErrorFrame(code="bad_frame", content=why))
        if self._bad_frames >= MAX_BAD_FRAMES:
            self._sender.hang_up(POLICY, "too many frames that are none")

    async def _refuse(self, frame: ClientFrame, code: str, why: str) -> None:
        session = getattr(frame, "session", "")
        client_id = frame.client_id if isinstance(frame, Say) else ""
        with suppress(ClientGone):
            await self._sender.send(
                ErrorFrame(code=code, content=why, session=session, client_id=client_id, ref=frame.ref)
            )
