"""A provider that costs next to nothing: a raw HTTP server in its own process, every reply prepared.

    python -m benchmarks.provider --latency-ms 50 --tokens 2000

prints {"url": ...}. Answers follow from the request alone: an orchestrator's first request gets three
delegate calls, its second a text; a worker gets two tool calls, then its result. `model: "stream"`
gets `--tokens` deltas, `model: "hold"` an answer that never comes.
"""

import argparse
import asyncio
import json
import sys

ORCHESTRATOR = b"You are the orchestrator"
ASSISTANT = b'"role":"assistant"'
TASKS: dict[str, str] = {
    "coder": "PART-A: write the letter A into the file a.md",
    "writer": "PART-B: write the letter B into the file b.md",
    "reviewer": "PART-C: write the letter C into the file c.md",
}
RESULT = '{"status":"success","summary_data":{"letters":1},"artifact_pointers":{}}'


def _chunk(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice: dict[str, object] = {"index": 0, "delta": delta, "finish_reason": finish}
    body: dict[str, object] = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
    }
    return b"data: " + json.dumps(body, separators=(",", ":")).encode() + b"\n\n"


def _usage() -> bytes:
    usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
    body: dict[str, object] = {
        "id": "c",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [],
        "usage": usage,
    }
    return b"data: " + json.dumps(body).encode() + b"\n\ndata: [DONE]\n\n"


def _text(*words: str) -> bytes:
    return b"".join(_chunk({"content": word}) for word in words) + _chunk({}, "stop") + _usage()


def _calls(*calls: tuple[str, dict[str, object]]) -> bytes:
    chunks: list[bytes] = []
    for index, (name, arguments) in enumerate(calls):
        function = {"name": name, "arguments": json.dumps(arguments)}
        call = {"index": index, "id": f"call{index}", "type": "function", "function": function}
        chunks.append(_chunk({"tool_calls": [call]}))
    return b"".join(chunks) + _chunk({}, "tool_calls") + _usage()


def _response(body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


DELEGATES = _response(_calls(*[("delegate", dict[str, object](agent=a, task=t)) for a, t in TASKS.items()]))
DONE = _response(_text("All ", "three ", "parts ", "are ", "done."))
LOOK = _response(_calls(("list_dir", {"path": "."})))
LOOK_AGAIN = _response(_calls(("list_dir", {"path": "./"})))
FINISHED = _response(_text(RESULT))


class Server(asyncio.Protocol):
    """One connection; requests of one connection come one after the other."""

    served = 0
    connections = 0

    def __init__(self, latency_s: float, stream: bytes) -> None:
        self._latency_s = latency_s
        self._stream = stream
        self._buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        Server.connections += 1

    def data_received(self, data: bytes) -> None:
        self._buffer += data
        head, separator, rest = self._buffer.partition(b"\r\n\r\n")
        if not separator:
            return
        length = 0
        for line in head.lower().split(b"\r\n"):
            if line.startswith(b"content-length:"):
                length = int(line[15:])
        if len(rest) < length:
            return
        self._buffer = rest[length:]
        if head.startswith(b"GET"):
            self._transport.write(_stats())
            return
        reply = self._reply(rest[:length])
        if reply and self._latency_s:
            asyncio.get_running_loop().call_later(self._latency_s, self._send, reply)
        elif reply:
            self._send(reply)

    def _reply(self, body: bytes) -> bytes:
        if b'"model":"stream"' in body:
            return self._stream
        if b'"model":"hold"' in body:
            Server.served += 1
            return b""
        turn = body.count(ASSISTANT)
        if ORCHESTRATOR in body:
            return DONE if turn else DELEGATES
        return (LOOK, LOOK_AGAIN, FINISHED)[min(turn, 2)]

    def _send(self, reply: bytes) -> None:
        Server.served += 1
        if not self._transport.is_closing():
            self._transport.write(reply)


def _stats() -> bytes:
    body = json.dumps({"requests": Server.served, "connections": Server.connections}).encode()
    return f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--latency-ms", type=float, default=0.0)
    parser.add_argument("--tokens", type=int, default=2000)
    options = parser.parse_args()
    stream = _response(_text(*[f"tok{n} " for n in range(options.tokens)]))
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Server(options.latency_ms / 1000, stream), "127.0.0.1", 0, backlog=4096
    )
    host, port = server.sockets[0].getsockname()[:2]
    sys.stdout.write(json.dumps({"url": f"http://{host}:{port}/v1"}) + "\n")
    sys.stdout.flush()
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
