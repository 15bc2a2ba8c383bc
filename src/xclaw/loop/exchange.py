"""What one run and others have said to one another, as far as a replay has to know."""

from dataclasses import replace

from xclaw.contracts.events import Event, MessageAdded, ModelAnswered
from xclaw.contracts.team_events import BoardChanged, MailSent


class Exchange:
    """A part of the run's state; changes only through `note`."""

    def __init__(self) -> None:
        self.sent: dict[str, MailSent] = {}
        """Mail that the run sent, by its id; without the text."""
        self.boards: dict[str, list[BoardChanged]] = {}
        """What happened to the task boards of its teams, by the call that made each."""
        self.answers: list[str] = []
        """Every text of the run that called for no tool."""
        self.answered_before: dict[str, int] = {}
        """How many of them there were when it read a message, by the message's id."""

    def note(self, event: Event) -> None:
        match event:
            case MailSent():
                self.sent[event.mail_id] = replace(event, text="")
            case BoardChanged():
                self.boards.setdefault(event.team_call_id, []).append(event)
            case ModelAnswered() if not event.message.tool_calls:
                self.answers.append(event.message.text)
            case MessageAdded() if event.message_id:
                self.answered_before[event.message_id] = len(self.answers)
            case _:
                pass
