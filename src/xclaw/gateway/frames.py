"""Between what channels get and what travels: `Outgoing` to frames, and frames back to entries."""

from dataclasses import replace
from typing import assert_never

import msgspec

from xclaw.contracts.channels import Delta, Failed, Happened, Outgoing, Reply
from xclaw.contracts.errors import JournalError
from xclaw.contracts.events import EVENT_TYPES, Address, Entry, Event, ModelAnswered, RunStarted
from xclaw.gateway.wire import BadFrame, DeltaFrame, ErrorFrame, EventFrame, ReplyFrame, ServerFrame
from xclaw.store.codec import decode_event, encode_event

_DATA = msgspec.json.Decoder(dict[str, object])


def frame_of(outgoing: Outgoing) -> ServerFrame:
    """The frame that says it."""
    match outgoing:
        case Delta():
            return DeltaFrame(
                request=outgoing.request,
                session=outgoing.session_id,
                run=outgoing.run_id,
                agent=outgoing.agent,
                after=outgoing.after,
                offset=outgoing.offset,
                content=outgoing.text,
            )
        case Happened():
            return event_frame(outgoing.entry, outgoing.request, outgoing.session_id)
        case Reply():
            event = event_frame(outgoing.entry, outgoing.request, outgoing.session_id)
            result = outgoing.ended.result
            fields = {name: getattr(event, name) for name in event.__struct_fields__}
            return ReplyFrame(content=result.text, outcome=result.outcome, **fields)
        case Failed():
            return ErrorFrame(
                code=outgoing.code,
                content=outgoing.text,
                request=outgoing.request,
                session=outgoing.session_id,
            )
        case _:
            assert_never(outgoing)


def event_frame(entry: Entry, request: str, session: str, *, complete: bool = False) -> EventFrame:
    """An entry as a frame; `complete`: with what only a model or a trace needs to see."""
    address = entry.address
    event = entry.event if complete else _for_clients(entry.event)
    return EventFrame(
        request=request,
        session=session,
        id=entry.id,
        seq=entry.seq,
        at=entry.at,
        run=address.run_id,
        root=address.root_id,
        parent=address.parent_id,
        run_session=address.session_id,
        data=_DATA.decode(encode_event(event)),
    )


def entry_of(frame: EventFrame | ReplyFrame) -> Entry:
    """The entry that a frame carries. Raises `BadFrame`."""
    kind = frame.data.get("kind")
    if kind not in EVENT_TYPES:
        raise BadFrame(f"events of kind {kind!r} are unknown to this xclaw: the gateway is a newer one")
    try:
        event = decode_event(kind, msgspec.json.encode(frame.data).decode())
    except JournalError as error:
        raise BadFrame(str(error)) from None
    return Entry(
        Address(frame.run, frame.root, frame.parent, frame.run_session), frame.seq, frame.at, event, frame.id
    )


def _for_clients(event: Event) -> Event:
    match event:
        case RunStarted():
            return replace(event, instructions="", history=(), client_tools=(), output_schema=None)
        case ModelAnswered():
            return replace(event, completion="")
        case _:
            return event
