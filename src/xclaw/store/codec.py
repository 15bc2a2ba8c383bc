"""Events to JSON text and back."""

import json
import sqlite3
from collections.abc import Iterable

import msgspec

from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import EVENT_TYPES, Address, Entry, Event

_ENCODER = msgspec.json.Encoder()
_DECODERS = {kind: msgspec.json.Decoder(event_type) for kind, event_type in EVENT_TYPES.items()}

_TITLE_LENGTH = 120
_TITLE_SEARCHED = 4_000

EntryRow = tuple[int, str, str, str, str, int, float, str, str]
"""id, run, root, parent, session, seq, at, kind, body."""


def well_formed(text: str) -> str:
    """`text` with lone surrogates, which no UTF-8 can hold, replaced by U+FFFD."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def encode_event(event: Event) -> str:
    """JSON text of an event. Text that is not well-formed Unicode is mended, never refused.

    Raises an exception for what `decode_event` could not read back, such as a `summary_data` that
    is not made of JSON values: a run with such an event could never be resumed.
    """
    try:
        body = _ENCODER.encode(event).decode()
    except UnicodeEncodeError:
        text = json.dumps(msgspec.to_builtins(event), ensure_ascii=False)
        mended: object = json.loads(well_formed(text), parse_constant=lambda _: None)
        body = _ENCODER.encode(mended).decode()
    decode_event(event.kind, body)
    return body


def decode_event(kind: str, body: str) -> Event:
    """Fields that this version does not know are left out.

    Raises `JournalError` for an unknown kind and for a body that does not fit its kind.
    """
    decoder = _DECODERS.get(kind)
    if decoder is None:
        raise JournalError(f"events of kind {kind!r} are unknown to this xclaw: a newer one wrote them")
    try:
        return decoder.decode(body)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise JournalError(f"a {kind!r} event cannot be read: {error}") from error


def entries_from(rows: Iterable[EntryRow]) -> list[Entry]:
    """Entries in the order of the rows. Raises `JournalError` that names the event."""
    addresses: dict[str, Address] = {}
    entries: list[Entry] = []
    for number, run, root, parent, session, seq, at, kind, body in rows:
        address = addresses.get(run)
        if address is None:
            address = addresses[run] = Address(run, root, parent, session)
        try:
            event = decode_event(kind, body)
        except JournalError as error:
            raise JournalError(f"event {number} (run {run!r}, seq {seq}): {error}") from error
        entries.append(Entry(address, seq, at, event, number))
    return entries


def title_from(text: str) -> str:
    """The first line that says something, at most 120 characters. Looked for near the beginning only."""
    first = next((line for line in text[:_TITLE_SEARCHED].splitlines() if line.strip()), "")
    return well_formed(first.strip()[:_TITLE_LENGTH])


def reason_from(error: Exception) -> str:
    """What a database error says, on one line, for a person."""
    name = getattr(error, "sqlite_errorname", "") if isinstance(error, sqlite3.Error) else ""
    return f"{error} ({name})" if name else str(error)
