"""What the model sees each turn."""

from dataclasses import replace

from xclaw.contracts.messages import ChatMessage, UserMessage
from xclaw.contracts.models import ModelRequest
from xclaw.contracts.tokens import estimate_tokens
from xclaw.loop.compaction import trim_messages
from xclaw.loop.finish import result_schema
from xclaw.loop.parts import Parts

TOOL_OVERHEAD_TOKENS = 80
"""A rough size of one tool's description in a request."""


def build_request(parts: Parts, max_output_tokens: int | None) -> ModelRequest:
    """The next request, from the state alone: the same state gives the same request.

    Constant parts come first (instructions, tools, examples), so that providers can cache them; what
    changes each turn comes last.
    """
    messages = [*parts.dialect.messages([*parts.shots, *_view(parts)])]
    _show_board(parts, messages)
    final = parts.output_schema
    if parts.task and parts.task.structured:
        final = result_schema(parts.task.output_schema)
    return ModelRequest(
        instructions=parts.instructions,
        messages=messages,
        tools=parts.dialect.tools(parts.specs),
        output_schema=_schema(parts, final),
        max_output_tokens=max_output_tokens,
        deadline=parts.bounds.deadline,
        agent=parts.agent.name,
        orchestrator=parts.agent.orchestrator,
    )


def _show_board(parts: Parts, messages: list[ChatMessage]) -> None:
    """Last, so that it costs no cached prefix; inside the last tool output for a coached model."""
    board = parts.board()
    last = messages[-1]
    if board and parts.coached and isinstance(last, UserMessage):
        messages[-1] = replace(last, text=f"{last.text}\n{board}")
    elif board:
        messages.append(UserMessage(board, "runtime"))


def _schema(parts: Parts, final: dict[str, object] | None) -> dict[str, object] | None:
    if parts.schema is not None:
        return parts.schema(final, is_over=parts.state.turn >= parts.bounds.max_turns)
    return parts.dialect.output_schema(parts.specs, final, parts.model.profile)


def _view(parts: Parts) -> list[ChatMessage]:
    """The conversation; a single message that would fill the window by itself is shortened."""
    view = parts.state.view()
    limit = parts.model.profile.context_tokens // 2
    return view if parts.state.tokens <= limit else trim_messages(view, limit)


def request_tokens(parts: Parts) -> int:
    """Estimated input tokens of the next request, without building it."""
    return parts.state.tokens + estimate_tokens(parts.instructions) + TOOL_OVERHEAD_TOKENS * len(parts.specs)
