"""The server process: started once, shared, restarted, and never left behind."""

import asyncio
import os
import select
import signal
import stat
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import pytest
from carrier import settings_in

from xclaw.contracts.errors import ModelUnavailable, NoModel
from xclaw.models.embedded.server import Address, EmbeddedServer

pytestmark = pytest.mark.usefixtures("fake_llama")


def server_of(
    tmp_path: Path, model: str = "good.gguf", *, sha256: str = "1", memory: int = 1, **changes: object
) -> EmbeddedServer:
    async def weights() -> Path:
        return tmp_path / model

    return EmbeddedServer(settings_in(tmp_path, **changes), weights, sha256=sha256, memory=memory)


def run(main: Callable[[], Awaitable[None]]) -> None:
    async def limited() -> None:
        async with asyncio.timeout(30):
            await main()

    asyncio.run(limited())


def wait_gone(pid: int, timeout_s: float = 5.0) -> bool:
    """Whether a process that is not our child ends in time."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], timeout_s)[0])
    finally:
        os.close(descriptor)


async def started(server: EmbeddedServer) -> int:
    """The child's process id as soon as there is one."""
    for _ in range(1_000_000):
        if server.pid is not None:
            return server.pid
        await asyncio.sleep(0)
    raise AssertionError("no process was started")


async def status_at(address: Address, key: str) -> int:
    async with (
        aiohttp.ClientSession() as session,
        session.get(f"{address.url}/v1/models", headers={"Authorization": f"Bearer {key}"}) as response,
    ):
        return response.status


async def crash(address: Address) -> None:
    body = {"messages": [{"role": "user", "content": "crash"}]}
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {address.key}"}) as session:
        with pytest.raises(aiohttp.ClientError):
            await session.post(f"{address.url}/v1/chat/completions", json=body)


def test_it_starts_at_the_first_call_and_only_once(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path)
        assert server.pid is None
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(server.address()) for _ in range(3)]
        assert len({call.result() for call in calls}) == 1
        address, pid = await server.address(), server.pid
        assert address.url.startswith("http://127.0.0.1:")
        assert await status_at(address, address.key) == 200
        assert await status_at(address, "guessed") == 401
        await server.close()
        await server.close()
        assert pid is not None
        assert wait_gone(pid)

    run(main)


def test_the_key_is_in_no_argument_and_in_no_file_that_others_can_read(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path)
        address = await server.address()
        assert server.pid is not None
        assert address.key not in Path(f"/proc/{server.pid}/cmdline").read_text()
        models = tmp_path / "cache" / "models"
        for file in models.iterdir():
            assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0, file.name
        assert stat.S_IMODE(models.stat().st_mode) == 0o700
        await server.close()

    run(main)


def test_a_crashed_server_is_started_again(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path)
        first = await server.address()
        await crash(first)
        server.suspect()
        second = await server.address()
        assert second != first
        assert await status_at(second, second.key) == 200
        await server.close()

    run(main)


def test_a_suspected_server_that_answers_is_kept(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path)
        first = await server.address()
        server.suspect()
        assert await server.address() == first
        await server.close()

    run(main)


def test_restarts_are_bounded(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, max_starts=2)
        for _ in range(2):
            await crash(await server.address())
            server.suspect()
        with pytest.raises(ModelUnavailable, match="ended 2 times within 600 s"):
            await server.address()
        assert server.pid is None

    run(main)


def test_closing_and_opening_again_is_no_crash(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, max_starts=1)
        for _ in range(3):
            assert await server.address()
            await server.close()

    run(main)


def test_a_model_that_does_not_load_shows_the_end_of_its_log(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, "bad.gguf")
        with pytest.raises(ModelUnavailable) as caught:
            await server.address()
        assert "cannot load bad.gguf: wrong magic" in str(caught.value)
        assert len(str(caught.value)) < 2_500
        assert server.pid is None

    run(main)


def test_a_load_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, "hang.gguf", start_timeout_s=0.5)
        with pytest.raises(ModelUnavailable, match=r"did not load within"):
            await server.address()
        assert server.pid is None

    run(main)


def test_too_little_memory_is_told_instead_of_starting(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, memory=10**18)
        with pytest.raises(NoModel, match=r"of memory and .* is available"):
            await server.address()
        assert server.pid is None

    run(main)


def test_cancelling_a_start_ends_the_process(tmp_path: Path) -> None:
    async def main() -> None:
        server = server_of(tmp_path, "hang.gguf")
        task = asyncio.create_task(server.address())
        pid = await started(server)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert wait_gone(pid)

    run(main)


def test_two_users_of_one_cache_share_a_server_until_its_owner_ends(tmp_path: Path) -> None:
    async def main() -> None:
        owner, guest = server_of(tmp_path), server_of(tmp_path)
        address = await owner.address()
        assert await guest.address() == address
        assert guest.pid is None
        await guest.close()
        assert await status_at(address, address.key) == 200, "a guest does not stop it"
        assert await guest.address() == address
        await owner.close()
        guest.suspect()
        assert await guest.address() != address
        assert guest.pid is not None
        await guest.close()

    run(main)


def test_servers_that_differ_are_not_shared(tmp_path: Path) -> None:
    async def main() -> None:
        servers = [
            server_of(tmp_path),
            server_of(tmp_path, sha256="2"),
            server_of(tmp_path, context_tokens=4096),
            server_of(tmp_path, shared=False),
            server_of(tmp_path, shared=False),
        ]
        assert len({(await server.address()).url for server in servers}) == 5
        for server in servers:
            await server.close()

    run(main)


def test_an_address_that_another_user_could_have_written_is_not_believed(tmp_path: Path) -> None:
    async def main() -> None:
        owner = server_of(tmp_path)
        await owner.address()
        [file] = (tmp_path / "cache" / "models").glob("server-*.json")
        file.chmod(0o644)
        guest = server_of(tmp_path, start_timeout_s=0.3)
        with pytest.raises(ModelUnavailable, match="started by another process"):
            await guest.address()
        await owner.close()

    run(main)


_PARENT = """
    import asyncio, sys
    sys.path[:0] = {paths!r}
    from pathlib import Path
    from carrier import settings_in
    from xclaw.models.embedded.server import EmbeddedServer

    async def main():
        tmp = Path({tmp!r})
        async def weights():
            return tmp / {model!r}
        server = EmbeddedServer(settings_in(tmp), weights, sha256="1", memory=1)
        task = asyncio.create_task(server.address())
        while server.pid is None:
            await asyncio.sleep(0)
        if {model!r} != "hang.gguf":
            await task
        print(server.pid, flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())
"""


@pytest.mark.parametrize("model", ["good.gguf", "hang.gguf"])
def test_the_server_ends_when_its_parent_is_killed(tmp_path: Path, model: str) -> None:
    """C02, C05: `kill -9` of xclaw leaves no 2 GB process, whether it serves or still loads."""
    code = textwrap.dedent(_PARENT).format(paths=[str(Path(__file__).parent)], tmp=str(tmp_path), model=model)
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
        assert not wait_gone(pid, 0)
        parent.send_signal(signal.SIGKILL)
        assert wait_gone(pid)

    async def main() -> None:
        server = server_of(tmp_path)
        assert await server.address(), "the dead owner's lock and address are in nobody's way"
        await server.close()

    run(main)
