"""What a client asks for, whichever of the wires it came by."""

from dataclasses import dataclass, field, replace

from xclaw.contracts.messages import Said
from xclaw.gateway.protocols.openai.formats import AnswerFormat
from xclaw.gateway.protocols.openai.tools import ToolOrder
from xclaw.runtime.orders import Brought


@dataclass(frozen=True, slots=True)
class Ask:
    """One request, read and checked."""

    model: str
    """As answers name it."""
    agent: str
    """Empty: the router decides."""
    text: str
    history: tuple[Said, ...] = ()
    note: str = ""
    tools: ToolOrder = field(default_factory=ToolOrder)
    format: AnswerFormat | None = None
    max_tokens: int | None = None
    """Of the answer's text, estimated."""
    is_streamed: bool = False
    with_usage: bool = False
    """Of a stream: its end tells the usage."""
    with_progress: bool = True

    @property
    def is_checked(self) -> bool:
        """The answer has to be looked at before any of it is shown."""
        return self.format is not None or self.tools.must_call

    def corrected(self, said: str, correction: str, agent: str) -> "Ask":
        """The same once more, to an agent that answered `said`."""
        asked = (Said("user", self.text),) if self.text else ()
        answered = (Said("assistant", said),) if said.strip() else ()
        return replace(self, agent=agent, text=correction, history=(*self.history, *asked, *answered))

    @property
    def brought(self) -> Brought:
        notes = (self.note, self.tools.note, self.format.note if self.format else "")
        return Brought(
            self.history,
            "\n\n".join(note for note in notes if note),
            self.tools.specs,
            self.format.schema if self.format else None,
        )
