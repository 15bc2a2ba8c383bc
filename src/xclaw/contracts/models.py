"""The Model contract: one request in, one answer out, streamed."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from xclaw.contracts.messages import AssistantMessage, ChatMessage
from xclaw.contracts.permissions import Effect
from xclaw.contracts.usage import Usage

StructuredOutput = Literal["none", "alone", "with_tools"]
"""Whether a model honours a JSON Schema: not at all, only in a request without tools, or always."""

Finish = Literal["stop", "tool_calls", "length", "content_filter"]


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """What a model is told of a tool. `parameters` is a JSON Schema of type object."""

    name: str
    """Matches `^[A-Za-z0-9_-]{1,64}$`."""
    description: str
    parameters: dict[str, object]
    effect: Effect = "writes"
    """What permissions go by; no model is told."""


@dataclass(frozen=True, slots=True)
class ModelProfile:
    """What a model can do, as data."""

    context_tokens: int = 128_000
    max_output_tokens: int = 8_192
    native_tools: bool = True
    structured_output: StructuredOutput = "none"
    few_shots: bool = False
    """Weak enough to need worked examples in front of the conversation."""
    worker_timeout_s: float = 60.0
    """How long a worker on this model may take when nothing else is said (SPEC K3)."""
    input_usd_per_million: float | None = None
    """Price per million input tokens; None when unknown, 0 for a free one."""
    output_usd_per_million: float | None = None
    images: bool = False
    """It can be shown pictures."""
    scripted: bool = False
    """Replies come from a script: every place that shows them says so."""

    def cost_usd(self, input_tokens: int, output_tokens: int) -> float | None:
        """US dollars at this price; None when it is unknown."""
        if self.input_usd_per_million is None or self.output_usd_per_million is None:
            return None
        return (input_tokens * self.input_usd_per_million + output_tokens * self.output_usd_per_million) / 1e6


def _no_images() -> dict[str, bytes]:
    return {}


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """Everything one call needs. Never holds a provider's wire format."""

    instructions: str
    messages: Sequence[ChatMessage]
    tools: tuple[ToolSpec, ...] = ()
    output_schema: dict[str, object] | None = None
    """Constrain the whole text answer to this JSON Schema."""
    max_output_tokens: int | None = None
    temperature: float | None = None
    deadline: float | None = None
    """On `loop.time()`'s clock; waiting for a retry never goes past it."""
    agent: str = ""
    """The agent that asks: a scripted model answers by it, a queue gives the orchestrator priority."""
    orchestrator: bool = False
    images: Mapping[str, bytes] = field(default_factory=_no_images)
    """The bytes of the messages' pictures, by sha256. One that is not in it is not sent: its message says
    why."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete answer: the provider said that it had finished."""

    message: AssistantMessage
    usage: Usage
    model: str
    """The `provider:model` that answered."""
    finish: Finish
    cost_usd: float | None = None
    """None when the price is unknown."""
    first_token_s: float | None = None
    """Seconds from sending the request to the first token."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """A failed try of one model, after which another try or another model follows."""

    model: str
    error: str
    status: int | None
    usage: Usage
    cost_usd: float | None
    partial: str
    """Text already streamed; whoever showed it takes it back."""
    next_model: str | None
    """Who tries next; None when nobody does."""
    wait_s: float = 0.0


class ReplySink(Protocol):
    """Where a reply goes while it is streamed. Both are called on the event loop and must not block."""

    def on_text(self, text: str) -> None: ...

    def on_attempt_failed(self, attempt: Attempt) -> None: ...


class Model(Protocol):
    """Answers one request at a time, any number concurrently. Holds no conversation.

    `reply` raises a `ModelError` (a single model) or `AllModelsFailed` (a chain). Tool calls of the
    returned message are complete and in the provider's order; their `id` is the provider's and not
    unique, the loop renames them. Cancelling `reply` ends the HTTP request. A chain reports each
    failed attempt to the sink before it goes on.
    """

    @property
    def name(self) -> str:
        """`provider:model`; for a chain, the first one's."""
        ...

    @property
    def profile(self) -> ModelProfile: ...

    async def reply(self, request: ModelRequest, sink: ReplySink) -> ModelReply: ...


ModelSource = Callable[[Sequence[str]], Model]
"""Turns a chain of `provider:model` strings into one live model. Raises `UsageError`, `NoModel`."""
