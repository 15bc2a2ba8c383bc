"""What a run asked people, and what they said: a part of its state."""

from dataclasses import dataclass, field

from xclaw.contracts.events import ApprovalAnswered, ApprovalAsked


@dataclass(slots=True)
class Questions:
    asked: dict[str, ApprovalAsked] = field(default_factory=dict[str, ApprovalAsked])
    """By call id: a call is asked about once."""
    answers: dict[str, ApprovalAnswered] = field(default_factory=dict[str, ApprovalAnswered])
    """By approval id."""

    def note(self, event: ApprovalAsked | ApprovalAnswered) -> None:
        if isinstance(event, ApprovalAsked):
            self.asked[event.call_id] = event
        else:
            self.answers[event.approval_id] = event

    def unanswered(self) -> list[ApprovalAsked]:
        """Those that still wait."""
        return [asked for asked in self.asked.values() if asked.approval_id not in self.answers]
