"""1,000 clients of a gateway on one core: 100 talk, one reads nothing; beside a bare uvicorn that echoes.

Tokens carry the time at which the provider sent them (for the floor: the client), so what is measured is
the way through the server and one more hop on loopback, in both.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp

from benchmarks.gateway_tokens import age_ms, stamp, token_provider
from benchmarks.setting import Row, median

CLIENTS, TALKING = 1_000, 100
ROUNDS, TOKENS, EVERY_S = 3, 100, 0.05
BEGIN_S = 1.0
"""Within which the clients of a round begin, one after the other."""
TOKEN = "benchmark-token-benchmark"
TICKS = os.sysconf("SC_CLK_TCK")
Socket = aiohttp.ClientWebSocketResponse


@dataclass
class Figures:
    """What one server did. Rounds of the two alternate; of times, the median round counts."""

    rounds: list[list[float]] = field(default_factory=list[list[float]])
    """The age of each token when it came, ms."""
    idle_kb: int = 0
    """Resident memory before anybody came."""
    connected_kb: int = 0
    most_kb: int = 0
    cpu_s: float = 0.0
    """While tokens came."""

    def at(self, share: float) -> float:
        return median([sorted(ages)[int(len(ages) * share)] for ages in self.rounds])

    @property
    def client_kb(self) -> float:
        return (self.connected_kb - self.idle_kb) / CLIENTS

    @property
    def token_ms(self) -> float:
        return self.cpu_s * 1000 / sum(map(len, self.rounds))


@dataclass(frozen=True, slots=True)
class Server:
    url: str
    pid: int

    def memory_kb(self, key: str = "VmRSS") -> int:
        status = Path(f"/proc/{self.pid}/status").read_text("ascii")
        return int(status.partition(f"{key}:")[2].split()[0])

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text("ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def away_from_first_core() -> Generator[int]:
    """Clients and provider leave the first core to the servers, as far as there is another."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, set(cores[1:]) or set(cores))
    try:
        yield cores[0]
    finally:
        os.sched_setaffinity(0, set(cores))


@contextmanager
def on_core(core: int, command: Sequence[str], env: dict[str, str]) -> Generator[Server]:
    process = subprocess.Popen(
        [sys.executable, "-m", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **env},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),
    )
    try:
        assert process.stdout is not None
        yield Server(json.loads(process.stdout.readline())["url"], process.pid)
    finally:
        process.terminate()
        process.communicate()


async def connected(session: aiohttp.ClientSession, server: Server) -> list[Socket]:
    return [await session.ws_connect(f"{server.url}/ws", max_msg_size=0) for _ in range(CLIENTS)]


async def watching(sockets: list[Socket]) -> None:
    """Each its own session; the last one all that happens, of which it reads nothing."""
    for number, socket in enumerate(sockets):
        await socket.receive_str()
        await socket.send_json({"type": "watch", "session": f"s{number}"})
        await socket.receive_str()
    for number in range(TALKING):
        await sockets[-1].send_json({"type": "watch", "session": f"s{number}"})


Talk = Callable[[Socket, int, list[float]], Coroutine[None, None, None]]


async def talk_once(server: Server, sockets: list[Socket], talk: Talk, figures: Figures) -> None:
    """One round: 100 clients at once, each token at its time."""
    ages: list[float] = []
    began = server.cpu_s()
    async with asyncio.TaskGroup() as group:
        for number, socket in enumerate(sockets[:TALKING]):
            group.create_task(talk(socket, number, ages))
    figures.cpu_s += server.cpu_s() - began
    figures.rounds.append(ages)
    figures.most_kb = server.memory_kb("VmHWM")


async def echoed(socket: Socket, number: int, ages: list[float]) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time() + number * BEGIN_S / TALKING

    async def send() -> None:
        for token in range(TOKENS):
            await asyncio.sleep(began + token * EVERY_S - loop.time())
            await socket.send_str(stamp())

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        for _ in range(TOKENS):
            ages.append(age_ms(await socket.receive_str()))  # noqa: PERF401 - each at its own time


async def answered(socket: Socket, number: int, ages: list[float]) -> None:
    await asyncio.sleep(number * BEGIN_S / TALKING)
    await socket.send_json({"type": "message", "session": f"s{number}", "text": "go"})
    tokens = 0
    while True:
        frame = json.loads(await socket.receive_str())
        if frame["type"] == "delta":
            came = [age_ms(token) for token in frame["content"].split()]
            tokens += len(came)
            ages += came
        elif frame["type"] == "reply":
            if frame["outcome"] != "success" or tokens != TOKENS:
                raise RuntimeError(f"{tokens} tokens, then {frame['outcome']}: {frame['content'][:200]}")
            return


async def figures() -> tuple[Figures, Figures]:
    """Ours, the floor's."""
    ours, floor = Figures(), Figures()
    async with AsyncExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        provider = await stack.enter_async_context(token_provider(TOKENS, EVERY_S))
        env = {"XCLAW_HOME": home, "HOME": home, "XCLAW_GATEWAY_TOKEN": TOKEN}
        env |= {"OPENAI_API_KEY": "x", "OPENAI_BASE_URL": provider}
        serve = ["xclaw", "serve", "--json", "--port", "0", "--model", "openai:m"]
        core = stack.enter_context(away_from_first_core())
        gateway = stack.enter_context(on_core(core, serve, env))
        echo = stack.enter_context(on_core(core, ["benchmarks.gateway_echo"], {}))
        ours.idle_kb, floor.idle_kb = gateway.memory_kb(), echo.memory_kb()
        session = await stack.enter_async_context(
            aiohttp.ClientSession(
                headers={"Authorization": f"Bearer {TOKEN}"}, connector=aiohttp.TCPConnector(limit=0)
            )
        )
        to_gateway, to_echo = await connected(session, gateway), await connected(session, echo)
        await watching(to_gateway)
        ours.connected_kb, floor.connected_kb = gateway.memory_kb(), echo.memory_kb()
        for _ in range(ROUNDS):
            await talk_once(echo, to_echo, echoed, floor)
            await talk_once(gateway, to_gateway, answered, ours)
    return ours, floor


async def measure() -> list[Row]:
    ours, floor = await figures()
    ratio = ours.at(0.95) / floor.at(0.95)
    grown_mb = (ours.most_kb - ours.connected_kb) / 1024
    return [
        Row(
            f"gateway: p95 ms a token, {CLIENTS:,} clients",
            f"{ours.at(0.95):.1f}",
            f"{floor.at(0.95):.1f}",
            f"{ratio:.1f}x",
            "20 ms",
        ),
        Row("gateway: median ms a token", f"{ours.at(0.5):.1f}", f"{floor.at(0.5):.1f}"),
        Row(
            "gateway: CPU ms a token",
            f"{ours.token_ms:.2f}",
            f"{floor.token_ms:.2f}",
            f"{ours.token_ms / floor.token_ms:.1f}x",
        ),
        Row("gateway: KB a client that is connected", f"{ours.client_kb:.0f}", f"{floor.client_kb:.0f}"),
        Row(f"gateway: MB more while {TALKING} talk, one is deaf", f"{grown_mb:.0f}", goal="50 MB"),
    ]


def main() -> list[Row]:
    return asyncio.run(measure())
