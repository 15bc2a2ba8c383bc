"""A host with things worth taking, and sandboxes on it that a probe is let loose in."""

import asyncio
import ctypes
import json
import os
import secrets
import socket
import subprocess
import tempfile
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.sandbox import Mount, Sandbox, SandboxBackend, SandboxCommand, SandboxPolicy, SandboxSpec

PROBE = Path(__file__).with_name("hostile_probe.py")
PYTHON = "/usr/bin/python3"
_libc = ctypes.CDLL(None)


@dataclass(frozen=True, slots=True)
class Verdict:
    escaped: bool
    detail: str


class Scene:
    """One sandbox in a dirty place. The word that the probe says backwards shows that it ran."""

    def __init__(self, runner: asyncio.Runner, sandbox: Sandbox, facts: dict[str, str]) -> None:
        self._runner = runner
        self._sandbox = sandbox
        self._facts = facts

    def attack(self, name: str) -> Verdict:
        word = secrets.token_hex(8)
        output = bytearray()
        argv = (PYTHON, "-I", PROBE.name, word, name)
        command = SandboxCommand(argv, 30.0, stdin=json.dumps(self._facts).encode())
        ended = self._runner.run(self._sandbox.exec(command, output.extend))
        lines = output.decode("utf-8", "replace").splitlines()
        assert word[::-1] in lines, f"the probe never ran: {lines[-5:]}, {ended}"
        verdict = lines[-1]
        assert verdict.startswith(("ESCAPED ", "BLOCKED ")), (
            f"the probe gave no answer: {lines[-5:]}, {ended}"
        )
        return Verdict(verdict.startswith("ESCAPED"), verdict)

    def repel(self, name: str) -> None:
        """The attack must be blocked."""
        verdict = self.attack(name)
        assert not verdict.escaped, verdict.detail


@contextmanager
def hostile_scene(backend: SandboxBackend) -> Generator[Scene]:
    with ExitStack() as stack:
        root = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="xclaw-hostile-")))
        root.chmod(0o755)
        facts = _facts(stack, root)
        workspace, inputs, project = root / "workspace", root / "input", root / "project"
        for directory in (workspace, inputs, project):
            directory.mkdir()
        for directory in (inputs, project):
            (directory / "given").write_text("given")
            (directory / "given").chmod(0o666)
        (workspace / PROBE.name).write_bytes(PROBE.read_bytes())
        mounts = (Mount(str(project), "/project"),)
        spec = SandboxSpec("0a1b2c", str(workspace), str(inputs), mounts, SandboxPolicy(cpus=2.0))
        runner = stack.enter_context(asyncio.Runner())
        sandbox = runner.run(backend.start(spec))
        try:
            yield Scene(runner, sandbox, facts)
        finally:
            runner.run(sandbox.close())


def _facts(stack: ExitStack, root: Path) -> dict[str, str]:
    secret = secrets.token_hex(16)
    (root / "secret").write_text(secret)
    (root / "other").mkdir()
    (root / "other" / "file").write_text(secret)
    variable = f"HOSTILE_{secret[:8]}_API_KEY"
    os.environ[variable] = secret
    stack.callback(os.environ.pop, variable)
    for flags in (os.O_RDONLY, os.O_DIRECTORY):
        leaked = os.open(root / "secret" if flags == os.O_RDONLY else root, flags)
        os.set_inheritable(leaked, True)
        stack.callback(os.close, leaked)
    victim = subprocess.Popen(["/bin/sh", "-c", f"trap : USR1; while :; do sleep 1; done # {secret}"])
    stack.callback(victim.wait)
    stack.callback(victim.kill)
    network = stack.enter_context(socket.create_server(("0.0.0.0", 0)))
    abstract, by_path = f"\0xclaw-hostile-{secret}", str(root / "socket")
    for place in (abstract, by_path):
        listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        listening.bind(place)
        listening.listen()
    Path(by_path).chmod(0o777)
    key = secrets.randbelow(1 << 30)
    segment = _libc.shmget(key, 4096, 0o1666)
    stack.callback(_libc.shmctl, segment, 0, None)
    shared = Path("/dev/shm", f"xclaw-hostile-{secret[:8]}")
    shared.write_text(secret)
    stack.callback(shared.unlink)
    addresses: list[str] = []
    with suppress(OSError):
        addresses = [
            str(found[4][0]) for found in socket.getaddrinfo(socket.gethostname(), None, socket.AF_INET)
        ]
    return {
        "secret": secret,
        "secret_file": str(root / "secret"),
        "other_file": str(root / "other" / "file"),
        "target_file": str(root / "target"),
        "victim": str(victim.pid),
        "victim_name": secret,
        "port": str(network.getsockname()[1]),
        "abstract": abstract.replace("\0", "@"),
        "socket": by_path,
        "addresses": ",".join(addresses),
        "shared_key": str(key),
        "shared_name": shared.name,
    }
