"""The door: every request comes in here, and finds its session, its agent and its way back (SPEC A1).

`dispatch` stores a message before it says so; a conversation answers its messages one at a time; a
watch reads what happens from the journal and then live. What a process leaves undone the next one
finds in the store and takes up.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import msgspec

from xclaw.contracts.channels import NO_WISHES, Accepted, Wishes
from xclaw.contracts.errors import JournalError, UsageError
from xclaw.contracts.events import Entry, RunStarted, TextDelta
from xclaw.contracts.ids import new_session_id
from xclaw.contracts.journal import RunRow
from xclaw.contracts.messages import Message
from xclaw.contracts.sessions import Inbound
from xclaw.contracts.users import OWNER
from xclaw.gateway.conversations import Conversation, given_up
from xclaw.gateway.feeds import Feed
from xclaw.gateway.names import conversation_key
from xclaw.gateway.outlets import Outlet
from xclaw.gateway.reception import Reception, conversation_row
from xclaw.gateway.services import GatewayServices
from xclaw.runtime.orders import Brought
from xclaw.runtime.runs import RunHandle
from xclaw.runtime.tree import NodeEnd

logger = logging.getLogger(__name__)

CLOSING = "the gateway is closing; send it again in a moment"


class Gateway:
    """Implements `contracts.channels.Door`. Made and ended by `app.open_gateway`."""

    def __init__(self, services: GatewayServices) -> None:
        self.services = services
        self.runs = services.runs
        self.journal = services.journal
        self.sessions = services.sessions
        self.agents = services.agents
        self.router = services.router
        self.metrics = services.metrics
        self.settings = services.settings
        self._reception = Reception(services)
        self._conversations: dict[str, Conversation] = {}
        self._feeds: dict[str, Feed] = {}
        self._roots: dict[str, Feed] = {}
        """The feed of each tree that runs."""
        self._guests: dict[str, RunHandle] = {}
        """Runs that `converse` began, by root."""
        self._unsubscribe: Callable[[], None] | None = None
        self._closing = False

    # --- life

    async def open(self) -> None:
        """Take up what an earlier process left: interrupted runs that came by a channel, then what waits."""
        self._unsubscribe = self.runs.subscribe(self._publish)
        for row in await self.runs.interrupted():
            if row.message_id:
                await self._take_up(row)
        for inbound in await self.sessions.pending():
            name = await self._name_of(inbound.message.session_id)
            self._conversation(inbound.message.session_id, name).add(replace(inbound, manner="queue"))

    @property
    def closing(self) -> bool:
        return self._closing

    @property
    def busy(self) -> int:
        """How many conversations have something to do."""
        return sum(not conversation.idle for conversation in self._conversations.values())

    async def drain(self, timeout_s: float) -> int:
        """Take no more messages; give runs `timeout_s` to end, then leave the rest to the next process.

        Answers how many runs that were. Watches end. Safe to repeat.
        """
        self._closing = True
        handles = [c.current for c in self._conversations.values() if c.current is not None]
        handles += self._guests.values()
        ends = [asyncio.ensure_future(handle.result()) for handle in handles]
        for conversation in list(self._conversations.values()):
            await conversation.stop()
        if ends:
            await asyncio.wait(ends, timeout=timeout_s)
        left = await self.runs.suspend()
        for end in ends:
            end.cancel()
        for feed in list(self._feeds.values()):
            feed.close()
        if self._unsubscribe is not None:
            self._unsubscribe()
            self._unsubscribe = None
        return left

    # --- what channels ask for

    async def dispatch(self, message: Message, wishes: Wishes = NO_WISHES, *, user: str = OWNER) -> Accepted:
        """As `Door.dispatch`. Cancelling it may leave the message accepted."""
        if self._closing:
            raise UsageError(CLOSING)
        row = conversation_row(new_session_id(message.channel, message.session_id), user, message.channel)
        name, key = row.name, row.conversation
        message = self._reception.admitted(message, wishes, key)
        inbound = Inbound(
            message, user, wishes.client_id, wishes.manner, msgspec.json.encode(wishes).decode()
        )
        conversation = self._conversation(key, name)
        async with conversation.accepting():
            await self.sessions.open_session(row)
            after = await self.sessions.last_id()
            stored = await self.sessions.accept(inbound)
            waiting = conversation.waiting
            duplicate = stored.message.id != message.id
            if not duplicate:
                conversation.add(stored)
        if stored.dropped:
            raise UsageError(f"this message was given up and has no answer: {stored.dropped[:500]}")
        self.metrics.message(message.channel, wishes.manner)
        if duplicate and stored.run_id:
            entries = await self.journal.read_run(stored.run_id)
            after = entries[0].id - 1 if entries else after
        return Accepted(stored.message.id, name, after, waiting, duplicate)

    async def converse(
        self, message: Message, wishes: Wishes, brought: Brought, *, user: str = OWNER
    ) -> RunHandle:
        """Answer a message at once, in a session of its own: for clients that keep the conversation
        themselves. The run is the caller's to cancel. Raises `UsageError`."""
        if self._closing:
            raise UsageError(CLOSING)
        row = conversation_row(new_session_id("web"), user, message.channel)
        message = self._reception.admitted(message, wishes, row.conversation, brought)
        request, session = await self._reception.resolved(message, wishes, row, brought)
        await self.sessions.open_session(session)
        handle = await self.runs.start(request)
        self.metrics.message(message.channel, wishes.manner)
        self._guests[handle.root_id] = handle
        return handle

    @asynccontextmanager
    async def watch(
        self, session_id: str, after: int | None = None, *, user: str = OWNER
    ) -> AsyncGenerator[Outlet]:
        """As `Door.watch`."""
        key = conversation_key(session_id, user)
        newest = await self.sessions.last_id()
        start = newest if after is None else min(max(after, 0), newest)
        feed = self._feed(key, session_id)
        outlet = Outlet(feed, lambda last, limit: self._read_on(key, feed, last, limit), start, self._limit)
        conversation = self._conversations.get(key)
        outlet.running = conversation.running if conversation else ()
        if self._closing:
            outlet.close()
        try:
            if after is not None:
                missed = await self.sessions.dropped(key, start)
                outlet.missed([given_up(each, session_id, each.dropped) for each in missed])
            yield outlet
        finally:
            outlet.leave()
            self._tidy(key)

    async def cancel(self, session_id: str, reason: str, *, user: str = OWNER) -> int:
        """As `Door.cancel`."""
        conversation = self._conversations.get(conversation_key(session_id, user))
        return await conversation.cancel(reason) if conversation else 0

    async def cancel_run(self, run_id: str, reason: str, *, user: str = OWNER) -> list[NodeEnd]:
        """End one run of the user's, and what is below it. Raises `UsageError` if there is none."""
        row = await self.run_row(run_id, user=user)
        if row.outcome is not None:
            return [NodeEnd(row.run_id, row.agent, row.outcome)]
        return await self.services.cancel(run_id, reason)

    async def run_row(self, run_id: str, *, user: str = OWNER) -> RunRow:
        """A run of the user's. Raises `UsageError` alike for no run and for somebody else's."""
        row = await self.journal.run_row(run_id)
        root = row if row is None or row.root_id == run_id else await self.journal.run_row(row.root_id)
        session = await self.sessions.session(root.session_id) if root else None
        if row is None or session is None or session.user != user:
            raise UsageError(f"there is no run {run_id[:80]!r}")
        return row

    async def drop(self, message_id: str, reason: str, *, user: str = OWNER) -> bool:
        """Give up a message that waits. Raises `UsageError` if the user has none of that id."""
        inbound = await self.sessions.inbound(message_id)
        if inbound is None or inbound.user != user:
            raise UsageError(f"there is no message {message_id[:80]!r}")
        key = inbound.message.session_id
        name = await self._name_of(key)
        try:
            return await self._conversation(key, name).drop(inbound, reason)
        finally:
            self._tidy(key)

    def forget(self, session_id: str, *, user: str = OWNER) -> None:
        """End the watches of a session that was deleted. Its feed stays for those that begin meanwhile."""
        feed = self._feeds.get(conversation_key(session_id, user))
        if feed is not None:
            feed.close()

    # --- inside

    @property
    def _limit(self) -> int:
        return self.settings.outlet_bytes

    def _feed(self, key: str, name: str) -> Feed:
        feed = self._feeds.get(key)
        if feed is None:
            feed = self._feeds[key] = Feed(name)
        return feed

    def _conversation(self, key: str, name: str) -> Conversation:
        conversation = self._conversations.get(key)
        if conversation is None:
            feed = self._feed(key, name)
            conversation = Conversation(
                feed,
                self.sessions,
                begin=lambda inbound: self._begin(inbound, feed),
                on_idle=lambda: self._tidy(key),
            )
            self._conversations[key] = conversation
        return conversation

    def _tidy(self, key: str) -> None:
        """Forget a conversation that nobody watches and in which nothing goes on."""
        conversation, feed = self._conversations.get(key), self._feeds.get(key)
        if feed is not None and feed.readers:
            return
        if conversation is None or conversation.idle:
            self._conversations.pop(key, None)
            self._feeds.pop(key, None)

    async def _begin(self, inbound: Inbound, feed: Feed) -> RunHandle:
        wishes = msgspec.json.decode(inbound.wishes, type=Wishes)
        row = conversation_row(feed.name, inbound.user, inbound.message.channel)
        request, session = await self._reception.resolved(inbound.message, wishes, row)
        await self.sessions.open_session(session)
        handle = await self.runs.start(request)
        self._attach(handle, feed, inbound.message.id)
        return handle

    def _attach(self, handle: RunHandle, feed: Feed, request: str) -> None:
        """From the same step of the event loop in which the run began, so that its feed misses nothing."""
        self._roots[handle.root_id] = feed
        feed.remember(handle.root_id, request)

    async def _take_up(self, row: RunRow) -> None:
        session = await self.sessions.session(row.session_id)
        if session is None:
            return
        if await self.sessions.inbound(row.message_id) is None:
            await self.runs.abandon(row.root_id, "the client that waited for it is gone")
            return
        try:
            handle = await self.runs.resume(row.root_id)
        except (UsageError, JournalError) as failure:
            logger.error("run %s cannot be taken up: %s", row.root_id, failure)
            return
        conversation = self._conversation(session.conversation, session.name)
        self._attach(handle, conversation.feed, row.message_id)
        conversation.adopt(handle, row.message_id)

    def _publish(self, entry: Entry) -> None:
        root_id = entry.address.root_id
        if not isinstance(entry.event, TextDelta):
            self.metrics.observe(entry)
        feed = self._roots.get(root_id)
        if feed is not None:
            feed.publish(entry)
        if entry.event.kind == "run_ended" and entry.address.run_id == root_id:
            self._roots.pop(root_id, None)
            self._guests.pop(root_id, None)

    async def _read_on(self, key: str, feed: Feed, after: int, limit: int) -> list[Entry]:
        page = await self.sessions.read_conversation(key, after, limit)
        for entry in page:
            root_id = entry.address.root_id
            if isinstance(entry.event, RunStarted) and entry.address.run_id == root_id:
                feed.remember(root_id, entry.event.message_id)
            elif not feed.knows(root_id):
                row = await self.journal.run_row(root_id)
                feed.remember(root_id, row.message_id if row else "")
        return page

    async def _name_of(self, key: str) -> str:
        session = await self.sessions.session(key)
        return session.name if session else key.rpartition(":")[2]
