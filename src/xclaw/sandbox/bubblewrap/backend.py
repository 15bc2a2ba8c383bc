"""Makes sandboxes of Linux namespaces with bubblewrap, as root or as an ordinary user."""

import asyncio
import os
import re
import shutil
import socket
import sys
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable, ToolFailed
from xclaw.contracts.sandbox import BackendName, Probe, Sandbox, SandboxSpec
from xclaw.sandbox.bubblewrap import frames
from xclaw.sandbox.bubblewrap.arguments import OLDEST, Version
from xclaw.sandbox.bubblewrap.order import PROXY_PORT
from xclaw.sandbox.bubblewrap.sandbox import BubblewrapSandbox, Keeper, end_keeper
from xclaw.sandbox.environment import environment_inside
from xclaw.sandbox.linux.home import Home, make_home, sweep
from xclaw.sandbox.linux.marks import MARK
from xclaw.sandbox.network.allowed import AllowedHosts
from xclaw.sandbox.network.proxy import ProxyServer, serve_proxy
from xclaw.sandbox.settings import SandboxSettings
from xclaw.sandbox.specs import checked_spec
from xclaw.sandbox.trying import tried

PROBE_S = 10.0
VERSION_S = 5.0
_SOURCE = Path(__file__).parents[3]
_MAIN = f"import sys; sys.path.insert(0, {str(_SOURCE)!r}); from xclaw.sandbox.bubblewrap.keeper import main; main()"
_INSTALL = "install it (apt-get install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap)"


class BubblewrapBackend:
    """Implements `SandboxBackend`."""

    def __init__(self, settings: SandboxSettings, *, allow_private: bool = False) -> None:
        """With `allow_private` a policy's network may lead to this machine and to private networks, too."""
        self._settings = settings
        self._allow_private = allow_private
        self._swept = False

    @property
    def name(self) -> BackendName:
        return "bubblewrap"

    async def probe(self) -> Probe:
        try:
            async with asyncio.timeout(PROBE_S):
                sandbox = await tried(self._started)
        except TimeoutError:
            return Probe("bubblewrap", False, f"a sandbox was not ready within {PROBE_S:g} s")
        except (SandboxUnavailable, SandboxLost, ToolFailed, OSError) as error:
            return Probe("bubblewrap", False, str(error))
        return Probe("bubblewrap", True, _found(sandbox.description))

    async def start(self, spec: SandboxSpec) -> Sandbox:
        return await self._started(spec)

    async def _started(self, spec: SandboxSpec) -> BubblewrapSandbox:
        program = shutil.which("bwrap")
        if sys.platform != "linux" or program is None:
            raise SandboxUnavailable(f"bubblewrap is not installed: {_INSTALL}")
        checked_spec(spec)
        allowed = self._allowed(spec)
        if not self._swept:
            self._swept = True
            await asyncio.to_thread(sweep)
        version = await _version(program)
        if version < OLDEST:
            raise SandboxUnavailable(
                f"bubblewrap {_dotted(version)} is too old; at least {_dotted(OLDEST)} is needed"
            )
        try:
            home = make_home()
        except OSError as error:
            raise SandboxUnavailable(f"no directory for a sandbox: {error}") from error
        try:
            return await self._kept(spec, home, self._order(spec, home, program, version), allowed)
        except BaseException:
            await asyncio.shield(asyncio.to_thread(home.remove))
            raise

    async def _kept(
        self, spec: SandboxSpec, home: Home, order: dict[str, object], allowed: AllowedHosts | None
    ) -> BubblewrapSandbox:
        ours, theirs = socket.socketpair()
        taking, handing = socket.socketpair()
        with taking:
            try:
                process = await _keeper(home.path.name, theirs, handing)
            except BaseException as error:
                ours.close()
                if isinstance(error, OSError):
                    raise SandboxUnavailable(f"no further process: {error.strerror}") from error
                raise
            finally:
                theirs.close()
                handing.close()
            keeper = await _connected(process, ours)
            try:
                keeper.writer.write(frames.fields_frame(frames.SETUP, order))
                description = await _ready(keeper, self._settings.boot_timeout_s)
                proxy = await _proxy(allowed, taking)
            except BaseException:
                keeper.writer.close()
                await asyncio.shield(end_keeper(process))
                raise
        return BubblewrapSandbox(keeper, home, spec.policy, proxy, description)

    def _allowed(self, spec: SandboxSpec) -> AllowedHosts | None:
        """Raises `SandboxUnavailable` for a host that is none."""
        if not spec.policy.network:
            return None
        try:
            return AllowedHosts(spec.policy.network, allow_private=self._allow_private)
        except ValueError as error:
            raise SandboxUnavailable(str(error)) from None

    def _order(self, spec: SandboxSpec, home: Home, program: str, version: Version) -> dict[str, object]:
        policy = spec.policy
        environment = environment_inside(policy.environment)
        if policy.network:
            address = f"http://127.0.0.1:{PROXY_PORT}"
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
                environment.setdefault(name, address)
        return {
            "name": home.path.name,
            "home": str(home.path),
            "bubblewrap": program,
            "version": version,
            "uid_base": self._settings.uid_base,
            "workspace": spec.workspace,
            "input": spec.input,
            "mounts": [(mount.source, mount.target) for mount in spec.mounts],
            "environment": list(environment.items()),
            "network": bool(policy.network),
            "cpus": policy.cpus,
            "memory_bytes": policy.memory_bytes,
            "processes": policy.processes,
            "disk_bytes": policy.disk_bytes,
        }


async def _version(program: str) -> Version:
    """(0,) where it does not say."""
    asked = await asyncio.create_subprocess_exec(
        program,
        "--version",
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        async with asyncio.timeout(VERSION_S):
            said, _ = await asked.communicate()
    except TimeoutError:
        return (0,)
    finally:
        if asked.returncode is None:
            asked.kill()
            await asyncio.shield(asked.wait())
    found = re.search(rb"(\d{1,5})\.(\d{1,5})(?:\.(\d{1,5}))?", said)
    return tuple(int(part or 0) for part in found.groups()) if found else (0,)


def _dotted(version: Version) -> str:
    return ".".join(map(str, version))


async def _keeper(name: str, line: socket.socket, handing: socket.socket) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", "-S", "-c", _MAIN, str(os.getpid()), str(handing.fileno())),
        stdin=line.fileno(),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        pass_fds=(handing.fileno(),),
        env={"PATH": "/usr/bin:/bin", MARK: name},
        cwd="/",
        start_new_session=True,  # Ctrl-C reaches xclaw, which then ends the sandbox
    )


async def _connected(process: asyncio.subprocess.Process, line: socket.socket) -> Keeper:
    try:
        reader, writer = await asyncio.open_unix_connection(sock=line)
    except BaseException:
        line.close()
        await asyncio.shield(end_keeper(process))
        raise
    return Keeper(process, reader, writer)


async def _ready(keeper: Keeper, timeout_s: float) -> frames.Fields:
    """What the keeper says of itself. Raises `SandboxUnavailable`."""
    waiting = frames.Unframed()
    try:
        async with asyncio.timeout(timeout_s):
            while data := await keeper.reader.read(1 << 16):
                for kind, body in waiting.feed(data):
                    fields = frames.fields_of(body)[0]
                    if kind == frames.READY:
                        return fields
                    raise SandboxUnavailable(f"the sandbox could not be set up: {fields.get('reason')}")
    except TimeoutError:
        raise SandboxUnavailable(f"the sandbox was not ready within {timeout_s:g} s") from None
    except ConnectionError:
        pass
    raise SandboxUnavailable("the sandbox's process ended before it was ready")


async def _proxy(allowed: AllowedHosts | None, taking: socket.socket) -> ProxyServer | None:
    """What listens inside is served here."""
    if allowed is None:
        return None
    _, descriptors, _, _ = socket.recv_fds(taking, 1, 1)
    if not descriptors:
        raise SandboxUnavailable("the sandbox gave nothing to reach the network by")
    return await serve_proxy(socket.socket(fileno=descriptors[0]), allowed)


def _found(about: frames.Fields) -> str:
    user = f"user id {cast('int', about['uid'])}"
    groups = (
        "control groups" if about["counted"] else "limits that are watched: no control group can be made here"
    )
    return f"{user}; {groups}"
