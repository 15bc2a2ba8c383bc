"""The floor: a bare aiohttp loop that makes the same calls and nothing else.

No journal, no limits, no retries, no validation: a bound, not a product.
"""

import asyncio
from collections.abc import Callable

import aiohttp
import msgspec

from benchmarks.provider import TASKS

PROMPT = "You are the orchestrator of a small team. " * 20
WORKER_PROMPT = "You are a worker of a small team. " * 20
_encode, _decode = msgspec.json.encode, msgspec.json.decode


async def call(
    session: aiohttp.ClientSession,
    url: str,
    messages: list[dict[str, object]],
    model: str = "m",
    on_text: Callable[[str], None] | None = None,
) -> dict[str, object]:
    """One streamed model call; answers the assistant message."""
    body = _encode({"model": model, "messages": messages, "stream": True})
    text: list[str] = []
    calls: list[dict[str, object]] = []
    async with session.post(
        f"{url}/chat/completions", data=body, headers={"Content-Type": "application/json"}
    ) as response:
        buffer = b""
        async for data in response.content.iter_any():
            buffer += data
            *lines, buffer = buffer.split(b"\n")
            for line in lines:
                if line.startswith(b"data: {"):
                    _read(_decode(line[6:]), text, calls, on_text)
    message: dict[str, object] = {"role": "assistant", "content": "".join(text)}
    if calls:
        message["tool_calls"] = calls
    return message


def _read(
    chunk: dict[str, list[dict[str, dict[str, object]]]],
    text: list[str],
    calls: list[dict[str, object]],
    on_text: Callable[[str], None] | None,
) -> None:
    for choice in chunk["choices"]:
        content = choice["delta"].get("content")
        if isinstance(content, str):
            text.append(content)
            if on_text is not None:
                on_text(content)
        calls.extend(choice["delta"].get("tool_calls", []))  # pyright: ignore[reportArgumentType, reportCallIssue] - JSON


async def worker(session: aiohttp.ClientSession, url: str, task: str) -> str:
    messages: list[dict[str, object]] = [
        {"role": "system", "content": WORKER_PROMPT}, {"role": "user", "content": task}
    ]  # fmt: skip
    while True:
        message = await call(session, url, messages)
        messages.append(message)
        calls = message.get("tool_calls")
        if not calls:
            return str(message["content"])
        messages.append({"role": "tool", "tool_call_id": "x", "content": "(empty)"})


async def job(session: aiohttp.ClientSession, url: str) -> str:
    """Orchestrator and three workers of three turns: 11 calls."""
    messages: list[dict[str, object]] = [
        {"role": "system", "content": PROMPT}, {"role": "user", "content": "Write three letters"}
    ]  # fmt: skip
    messages.append(await call(session, url, messages))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(worker(session, url, text)) for text in TASKS.values()]
    for task in tasks:
        answer: dict[str, object] = {"role": "tool", "tool_call_id": "x", "content": task.result()}
        messages.append(answer)
    return str((await call(session, url, messages))["content"])


def session() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
