"""What a fake provider has served: enough to prove that no finished call was paid for twice."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field

import msgspec

from xclaw.testing.wire_reading import last_user_text, wire_messages


@dataclass(slots=True)
class Stats:
    """Counts since the start or the last reset. `finished` means that the whole answer was sent."""

    requests: int = 0
    finished: int = 0
    abandoned: int = 0
    connections: int = 0
    by_messages: Counter[str] = field(default_factory=Counter[str])
    """Finished answers by the SHA-256 of the whole `messages` array."""
    by_last_user: Counter[str] = field(default_factory=Counter[str])
    """Finished answers by the SHA-256 of the last user message's text."""

    def finish(self, messages: object) -> None:
        self.finished += 1
        self.by_messages[messages_hash(messages)] += 1
        last = last_user_text(wire_messages(messages))
        self.by_last_user[hashlib.sha256(last.encode()).hexdigest()] += 1

    def reset(self) -> None:
        self.requests = self.finished = self.abandoned = self.connections = 0
        self.by_messages.clear()
        self.by_last_user.clear()

    def as_json(self) -> bytes:
        return msgspec.json.encode(self)


def messages_hash(messages: object) -> str:
    """The key of `by_messages`: SHA-256 of the array as compact JSON with sorted keys."""
    return hashlib.sha256(msgspec.json.encode(messages, order="sorted")).hexdigest()
