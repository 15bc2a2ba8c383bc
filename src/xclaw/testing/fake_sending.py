"""How a fake provider's replies go out over HTTP."""

import asyncio
from collections.abc import Mapping
from typing import assert_never

from aiohttp import web

from xclaw.testing.fake_replies import (
    Calls,
    Cut,
    Hang,
    Pause,
    Raw,
    Reply,
    Status,
    Text,
    Until,
    document_of,
    error_body,
    stream_of,
)
from xclaw.testing.wire_reading import asks_usage


async def send_reply(
    request: web.BaseRequest, reply: Reply, body: Mapping[str, object]
) -> web.StreamResponse:
    """Send all of it. Cancelled when the client goes away; `body` says whether it wants a stream."""
    match reply:
        case Text() | Calls():
            return await _send_answer(request, reply, body)
        case Status():
            return await _sent_whole(request, _status_response(reply))
        case Raw():
            return await _send_raw(request, reply)
        case Hang():
            await asyncio.get_running_loop().create_future()
            raise AssertionError("a future that nobody resolves has a result")
        case _:
            assert_never(reply)


async def _send_answer(
    request: web.BaseRequest, reply: Text | Calls, body: Mapping[str, object]
) -> web.StreamResponse:
    if body.get("stream") is not True:
        response = web.Response(body=document_of(reply), content_type="application/json")
    else:
        with_usage = asks_usage(body)
        response = web.Response(body=stream_of(reply, with_usage), content_type="text/event-stream")
    return await _sent_whole(request, response)


async def _sent_whole(request: web.BaseRequest, response: web.Response) -> web.Response:
    await response.prepare(request)
    await response.write_eof()
    return response


async def _send_raw(request: web.BaseRequest, reply: Raw) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": reply.content_type})
    response.enable_chunked_encoding()
    await response.prepare(request)
    for part in reply.parts:
        match part:
            case bytes():
                await response.write(part)
            case Pause():
                await asyncio.sleep(part.seconds)
            case Until():
                await part.event.wait()
            case Cut():
                _drop(request, part.reset)
                return response
            case _:
                assert_never(part)
    await response.write_eof()
    return response


def _drop(request: web.BaseRequest, reset: bool) -> None:
    transport = request.transport
    if transport is not None:
        if reset:
            transport.abort()
        else:
            transport.close()


def _status_response(reply: Status) -> web.Response:
    headers = dict(reply.headers or {})
    if not any(name.lower() == "content-type" for name in headers):
        headers["Content-Type"] = "application/json"
    return web.Response(status=reply.code, body=error_body(reply), headers=headers)
