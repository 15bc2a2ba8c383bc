"""A conversation as a file: Markdown to read, or JSON lines to work with.

Markdown has what was said and by whom: every message, every answer, who was asked to help, what was
delivered. Texts stand in block quotes, so that nothing in them can pass for somebody else's.
"""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Literal

import msgspec

from xclaw.contracts.events import (
    ArtifactDelivered,
    ChildSpawned,
    Entry,
    MessageAdded,
    RunEnded,
    RunStarted,
)
from xclaw.contracts.sessions import SessionRow, SessionStore
from xclaw.gateway.frames import event_frame

ExportFormat = Literal["markdown", "jsonl"]
PAGE = 200
_TASK_CHARACTERS = 200
_INVISIBLE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


async def exported(store: SessionStore, row: SessionRow, form: ExportFormat) -> AsyncIterator[str]:
    """The conversation of `row`, oldest first, in pieces. Raises `JournalError`."""
    if form == "jsonl":
        async for entry, request in _entries(store, row):
            frame = event_frame(entry, request, row.name, complete=True)
            yield msgspec.json.encode(frame).decode() + "\n"
        return
    yield _head(row)
    agents: dict[str, str] = {}
    async for entry, _ in _entries(store, row):
        text = _said(entry, agents)
        if text:
            yield text


async def _entries(store: SessionStore, row: SessionRow) -> AsyncIterator[tuple[Entry, str]]:
    """Every entry with the id of the message that its tree answers."""
    requests: dict[str, str] = {}
    after = 0
    while page := await store.read_conversation(row.conversation, after, PAGE):
        for entry in page:
            event, root = entry.event, entry.address.root_id
            if isinstance(event, RunStarted) and entry.address.run_id == root:
                requests[root] = event.message_id
            yield entry, requests.get(root, "")
        after = page[-1].id


def _head(row: SessionRow) -> str:
    title = one_line(row.title or row.name)
    lines = [f"# {title}", "", f"Session `{one_line(row.name).replace('`', ' ')}`"]
    if row.created_at:
        lines[-1] += f", begun {_time(row.created_at)}"
    return "\n".join(lines) + "\n"


def _said(entry: Entry, agents: dict[str, str]) -> str:
    """What one event tells a reader; empty for most. `agents` learns who drives which run."""
    address, event = entry.address, entry.event
    is_root = address.run_id == address.root_id
    agent = one_line(agents.get(address.run_id, "agent"))
    match event:
        case RunStarted():
            agents[address.run_id] = event.agent
            return _spoken(f"User, to {one_line(event.agent)}", entry.at, event.input) if is_root else ""
        case MessageAdded(origin="user"):
            return _spoken(f"User, to {agent}", entry.at, event.text)
        case ChildSpawned():
            return f"\n- {agent} asked {one_line(event.task.agent)}: {_shown(event.task.text)}\n"
        case ArtifactDelivered():
            size = f"{event.pointer.size:,} bytes"
            return f"\n- {agent} delivered {one_line(event.name)} ({size}, sha256 {event.pointer.sha256})\n"
        case RunEnded() if is_root:
            return _spoken(_ended(agent, event), entry.at, event.result.text or event.result.reason)
        case _:
            return ""


def _ended(agent: str, event: RunEnded) -> str:
    return agent if event.outcome == "success" else f"{agent} ({event.outcome.replace('_', ' ')})"


def _spoken(who: str, at: float, text: str) -> str:
    shown = _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n").replace("\r", "\n"))
    quoted = "\n".join(f"> {line}".rstrip() for line in shown.split("\n"))
    return f"\n## {who} · {_time(at)}\n\n{quoted}\n"


def _shown(text: str) -> str:
    line = one_line(text)
    return line if len(line) <= _TASK_CHARACTERS else f"{line[:_TASK_CHARACTERS]}…"


def one_line(text: str) -> str:
    """Text of others inside a line of ours."""
    return _INVISIBLE.sub("\N{REPLACEMENT CHARACTER}", " ".join(text.split()))


def _time(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (OverflowError, ValueError, OSError):
        return "at an unknown time"
