"""What runs of one tree say to one another: journaled by the sender, acknowledged by the receiver's event."""

import asyncio
import re
from collections import deque
from collections.abc import Sequence
from xml.etree import ElementTree

from xclaw.contracts.events import Entry, MessageAdded
from xclaw.contracts.team_events import MailSent
from xclaw.runtime.notifications import DATA_NOTE, as_xml, xml_text

BATCH_MESSAGES = 20
BATCH_CHARACTERS = 40_000
"""Of what a run reads in one turn, but for its first message; the rest comes in the next ones."""
MAIL_CHARACTERS = 20_000
_TURN = re.compile(r"turn_(.+)_\d+")


def turn_id(run_id: str, number: int) -> str:
    """The id of the mail with which a member of a round-robin team is told that it is its turn."""
    return f"turn_{run_id}_{number}"


def turn_of(mail_id: str) -> str:
    """The run whose turn it tells of; empty for any other mail."""
    found = _TURN.fullmatch(mail_id)
    return found[1] if found else ""


class Mail:
    """What is on its way to runs that are not there to read it: not started yet, or not taken up again."""

    def __init__(self) -> None:
        self._waiting: dict[str, list[MailSent]] = {}

    def recall(self, entries: Sequence[Entry]) -> None:
        """Take back from the journal what was sent and not acknowledged."""
        taken = {entry.event.message_id for entry in entries if isinstance(entry.event, MessageAdded)}
        for entry in entries:
            if isinstance(entry.event, MailSent) and entry.event.mail_id not in taken:
                self.keep(entry.event)

    def keep(self, mail: MailSent) -> None:
        self._waiting.setdefault(mail.to_run_id, []).append(mail)

    def collect(self, run_id: str) -> list[MailSent]:
        """What waits for a run, which is there from now on."""
        return self._waiting.pop(run_id, [])


class Mailbox:
    """What was said to one run and not read yet, in order."""

    def __init__(self) -> None:
        self.changed = asyncio.Event()
        self._unread: deque[MessageAdded] = deque()

    def put(self, message: MessageAdded) -> None:
        self._unread.append(message)
        self.changed.set()

    def take(self) -> list[MessageAdded]:
        """What is read in one turn."""
        batch: list[MessageAdded] = []
        characters = 0
        while self._unread and len(batch) < BATCH_MESSAGES:
            characters += len(self._unread[0].text)
            if batch and characters > BATCH_CHARACTERS:
                break
            batch.append(self._unread.popleft())
        if not self._unread:
            self.changed.clear()
        return batch

    def empty(self) -> list[MessageAdded]:
        """All of it."""
        everything = list(self._unread)
        self._unread.clear()
        self.changed.clear()
        return everything

    def has_mail(self, *, from_above: bool = False) -> bool:
        """Something of other runs; what the user says stands by itself, and is asked again if nobody
        reads it. `from_above`: of the run's parent only."""
        if from_above:
            return any(message.origin == "agent" for message in self._unread)
        return any(message.origin != "user" for message in self._unread)


def as_message(mail: MailSent) -> MessageAdded:
    """The event with which the receiver reads it. Only here what is data becomes markup: whoever is
    shown the mail itself sees the text as it was written."""
    if mail.origin == "agent":
        return MessageAdded(mail.text, mail.origin, mail.mail_id)
    element = ElementTree.Element(
        "mail", {"id": xml_text(mail.mail_id), "from": xml_text(mail.sender), "to": xml_text(mail.to)}
    )
    element.text = xml_text(mail.text)
    return MessageAdded(f"{DATA_NOTE}\n{as_xml(element)}", mail.origin, mail.mail_id)
