"""The body of a request: sent whole, once, and not held while the model thinks."""

import asyncio
import sys

import aiohttp
import pytest

from xclaw.models.openai.body import RequestBody
from xclaw.testing import FakeProvider, Hang, Reply, Text


def post(provider: FakeProvider, body: RequestBody) -> asyncio.Task[int]:
    async def send() -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{provider.url}/chat/completions", data=body) as response,
        ):
            await response.read()
            return response.status

    return asyncio.get_running_loop().create_task(send())


@pytest.mark.parametrize("length", [1, 300_000])
def test_a_body_is_sent_whole_and_only_once(length: int) -> None:
    async def main() -> None:
        async with FakeProvider() as provider, asyncio.timeout(10):
            provider.answer_with(lambda _: Text("yes"))
            body = RequestBody(b'{"model": "m", "messages": [], "user": "%s"}' % (b"x" * length))
            assert await post(provider, body) == 200
            assert provider.requests[0].body["user"] == "x" * length
            with pytest.raises(aiohttp.ClientError, match="only once"):
                await post(provider, body)
            assert len(provider.requests) == 1

    asyncio.run(main())


def test_nobody_holds_the_body_while_the_model_thinks() -> None:
    """A thousand held runs do not hold their conversations twice."""

    async def main() -> None:
        async with FakeProvider() as provider, asyncio.timeout(10):
            asked = asyncio.Event()

            def hang(_: dict[str, object]) -> Reply:
                asked.set()
                return Hang()

            provider.answer_with(hang)
            content = b'{"model": "m", "messages": [], "user": "%s"}' % (b"x" * 1000)
            alone = sys.getrefcount(content)
            waiting = post(provider, RequestBody(content))
            await asked.wait()
            assert sys.getrefcount(content) == alone
            waiting.cancel()

    asyncio.run(main())
