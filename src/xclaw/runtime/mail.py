"""What runs of one tree say to one another: journaled by the sender, acknowledged by the receiver's event."""

from collections.abc import Sequence

from xclaw.contracts.events import Entry, MailSent, MessageAdded


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


def as_message(mail: MailSent) -> MessageAdded:
    """The event with which the receiver reads it."""
    return MessageAdded(mail.text, mail.origin, mail.mail_id)
