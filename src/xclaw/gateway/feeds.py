"""What happens in one conversation, handed to whoever watches it."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Protocol

from xclaw.contracts.channels import Delta, Failed, Happened, Outgoing, Reply
from xclaw.contracts.events import Entry, RunEnded, RunStarted, TextDelta

KNOWN_ROOTS = 256
"""Of how many trees a feed remembers whose request they answer."""


class LiveText:
    """What a run has streamed since its last stored entry. It only grows; a stored entry begins a new one."""

    def __init__(self, run_id: str, root_id: str, agent: str, after: int) -> None:
        self.run_id = run_id
        self.root_id = root_id
        self.agent = agent
        self.after = after
        self.parts: list[str] = []


class Reader(Protocol):
    """One who watches. Neither call may block or raise."""

    def stored(self, entry: Entry) -> None: ...

    def streamed(self, live: LiveText, text: str) -> None: ...

    def failed(self, failed: Failed) -> None: ...

    def close(self) -> None: ...


class Feed:
    """Fans the entries of one conversation out. Holds no history: that is the journal's."""

    def __init__(self, name: str) -> None:
        self.name = name
        """What the client calls the conversation."""
        self.newest = 0
        """The highest id that was published here."""
        self.readers: list[Reader] = []
        self._texts: dict[str, LiveText] = {}
        self._agents: dict[str, str] = {}
        self._requests: OrderedDict[str, str] = OrderedDict()

    @property
    def texts(self) -> Iterable[LiveText]:
        """What runs are in the middle of saying."""
        return list(self._texts.values())

    def knows(self, root_id: str) -> bool:
        return root_id in self._requests

    def remember(self, root_id: str, request: str) -> None:
        """Say whose request a tree answers."""
        self._requests[root_id] = request
        self._requests.move_to_end(root_id)
        while len(self._requests) > KNOWN_ROOTS:
            self._requests.popitem(last=False)

    def publish(self, entry: Entry) -> None:
        if isinstance(entry.event, TextDelta):
            self._stream(entry, entry.event.text)
            return
        self.newest = max(self.newest, entry.id)
        self._note(entry)
        for reader in list(self.readers):
            reader.stored(entry)

    def fail(self, failed: Failed) -> None:
        for reader in list(self.readers):
            reader.failed(failed)

    def close(self) -> None:
        """End every watch."""
        for reader in list(self.readers):
            reader.close()

    def outgoing(self, entry: Entry) -> Outgoing:
        """A stored entry as channels get it: the end of a root is the reply to its request."""
        address, event = entry.address, entry.event
        request = self._requests.get(address.root_id, "")
        if isinstance(event, RunEnded) and address.run_id == address.root_id:
            return Reply(request, self.name, entry, event)
        return Happened(request, self.name, entry)

    def delta(self, live: LiveText, offset: int, text: str) -> Delta:
        request = self._requests.get(live.root_id, "")
        return Delta(request, self.name, live.run_id, live.agent, live.after, offset, text)

    def _stream(self, entry: Entry, text: str) -> None:
        address = entry.address
        live = self._texts.get(address.run_id)
        if live is None:
            agent = self._agents.get(address.run_id, "")
            live = self._texts[address.run_id] = LiveText(address.run_id, address.root_id, agent, 0)
        live.parts.append(text)
        for reader in list(self.readers):
            reader.streamed(live, text)

    def _note(self, entry: Entry) -> None:
        address, event = entry.address, entry.event
        if isinstance(event, RunStarted):
            self._agents[address.run_id] = event.agent
            if address.run_id == address.root_id:
                self.remember(address.root_id, event.message_id)
        if isinstance(event, RunEnded):
            self._texts.pop(address.run_id, None)
            self._agents.pop(address.run_id, None)
            return
        agent = self._agents.get(address.run_id, "")
        self._texts[address.run_id] = LiveText(address.run_id, address.root_id, agent, entry.id)
