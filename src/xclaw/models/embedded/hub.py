"""The official file over HTTPS; a broken download goes on where it stopped."""

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path

import aiohttp

from xclaw.contracts.errors import UsageError
from xclaw.models.embedded.joining import CHUNK, corrupt, hash_file, publish
from xclaw.models.embedded.parts import Weights

_TRIES = 4
_PAUSE_S = 1.0
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=30.0, sock_read=60.0)


class HubUnavailable(UsageError):
    """The hub could not be reached, or answered with something else."""


class _Broken(Exception):
    """This try ended early; what came is kept."""


async def download(weights: Weights, target: Path, on_bytes: Callable[[int], None]) -> None:
    """Fetch `weights.url` to `target`, which appears only when complete and right.

    The caller holds the lock of `target`. What has come is kept in `<target>.part` when it breaks or
    is cancelled. Raises `HubUnavailable`, and `CorruptWeights` after removing what came.
    """
    partial = target.with_name(target.name + ".part")
    last = ""
    async with aiohttp.ClientSession(timeout=_TIMEOUT, trust_env=True) as session:
        for attempt in range(_TRIES):
            if attempt:
                await asyncio.sleep(_PAUSE_S * attempt)
            try:
                await _fetch(session, weights, partial, on_bytes)
                break
            except (aiohttp.ClientError, TimeoutError, OSError, _Broken) as error:
                last = f"{type(error).__name__}: {error}"
        else:
            raise HubUnavailable(f"cannot download {weights.url}: {last}")
    await _accept(weights, partial, target)


async def _accept(weights: Weights, partial: Path, target: Path) -> None:
    actual = await hash_file(partial, lambda _: None)
    if actual != weights.sha256:
        _remove(partial)
        raise corrupt(f"what {weights.url} answered", weights.sha256, actual, "it was removed")
    publish(partial, target)


async def _fetch(
    session: aiohttp.ClientSession, weights: Weights, partial: Path, on_bytes: Callable[[int], None]
) -> None:
    have = _kept_bytes(partial, weights)
    if have == weights.size:
        return
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={have}-"} if have else {})
    async with session.get(weights.url, headers=headers) as response:
        start = _start_of(response, have, weights.url)
        with partial.open("r+b" if start else "wb") as file:
            file.seek(start)
            file.truncate()
            done = start
            async for data in response.content.iter_chunked(CHUNK):
                done += len(data)
                if done > weights.size:
                    raise HubUnavailable(f"{weights.url} answered with more than {weights.size} bytes")
                await asyncio.to_thread(file.write, data)
                on_bytes(done)
            file.flush()
            await asyncio.to_thread(os.fsync, file.fileno())
    if done < weights.size:
        raise _Broken(f"ended after {done} of {weights.size} bytes")


def _start_of(response: aiohttp.ClientResponse, have: int, url: str) -> int:
    """Where the answer's bytes belong: a server that ignores Range begins again."""
    if response.status == 200:
        return 0
    span = re.match(r"bytes (\d+)-", response.headers.get("Content-Range", ""))
    if response.status == 206 and span and int(span[1]) == have:
        return have
    if response.status >= 500 or response.status == 429:
        raise _Broken(f"HTTP {response.status}")
    raise HubUnavailable(f"{url} answered HTTP {response.status}")


def _kept_bytes(partial: Path, weights: Weights) -> int:
    """How much an earlier try left; what cannot be a beginning of the file is removed."""
    have = partial.stat().st_size if partial.is_file() else 0
    if have > weights.size:
        _remove(partial)
        return 0
    return have


def _remove(partial: Path) -> None:
    partial.unlink()
