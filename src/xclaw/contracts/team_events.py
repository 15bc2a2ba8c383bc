"""What agents of one tree say to one another, as events (part of `contracts.events.Event`)."""

from dataclasses import dataclass
from typing import Literal

from xclaw.contracts.messages import Origin


@dataclass(frozen=True, slots=True)
class MailSent:
    """In the sender's stream. The receiver's `MessageAdded` of that `message_id` acknowledges it; until
    then it is on its way, also after a crash."""

    mail_id: str
    to_run_id: str
    text: str
    origin: Origin
    """How the receiver is to take it: an "agent" above it gives instructions, anything else is data."""
    sender: str = ""
    """Who wrote it, of mail that is data: a team mate by its name in the team."""
    to: str = ""
    """As whom the receiver was addressed, of mail that is data."""
    kind: Literal["mail_sent"] = "mail_sent"


BoardChange = Literal["added", "claimed", "completed", "released"]


@dataclass(frozen=True, slots=True)
class BoardChanged:
    """In the stream of a team's lead: one change of the team's task board."""

    team_call_id: str
    """The call that made the team."""
    change: BoardChange
    board_task_id: str
    member: str
    call_id: str
    """The member's call; its replay changes nothing again."""
    text: str = ""
    """What is to be done, of "added"; what came of it, of "completed"."""
    after: tuple[str, ...] = ()
    """What has to be done first, of "added"."""
    kind: Literal["board_changed"] = "board_changed"
