"""Makes sandboxes of containers, as root."""

import asyncio
import os
import platform
import socket
import sys
from pathlib import Path

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable, ToolFailed
from xclaw.contracts.sandbox import BackendName, Probe, Sandbox, SandboxCommand, SandboxExit, SandboxSpec
from xclaw.sandbox.commanded import CommandedSandbox
from xclaw.sandbox.container import guard
from xclaw.sandbox.container.arguments import LABEL, USERS, Container, run_arguments
from xclaw.sandbox.container.command import ContainerCommand, Started
from xclaw.sandbox.container.groups import group_paths
from xclaw.sandbox.container.podman import Podman, find_podman
from xclaw.sandbox.environment import environment_inside
from xclaw.sandbox.files import absolute_inside
from xclaw.sandbox.kvm.image import check_image, find_image, unpacked_root
from xclaw.sandbox.linux.call_filter import filter_program
from xclaw.sandbox.linux.control_groups import remove_groups
from xclaw.sandbox.linux.ground import claim_uid
from xclaw.sandbox.linux.home import Home, make_home, sweep
from xclaw.sandbox.linux.marks import GROUPS_FILE
from xclaw.sandbox.linux.trees import Unmeasurable, give, open_directory
from xclaw.sandbox.linux.watch import Watch
from xclaw.sandbox.output import Output
from xclaw.sandbox.settings import SandboxSettings
from xclaw.sandbox.specs import checked_spec, refuse_network
from xclaw.sandbox.trying import tried

PROBE_S = 60.0
_PASSWD = "sandbox:x:{uid}:{uid}::/workspace:/bin/sh\nnobody:x:65534:65534::/nonexistent:/bin/false\n"
_GROUP = "sandbox:x:{uid}:\nnogroup:x:65534:\n"


class ContainerBackend:
    """Implements `SandboxBackend`."""

    def __init__(self, settings: SandboxSettings) -> None:
        self._settings = settings
        self._swept = False

    @property
    def name(self) -> BackendName:
        return "container"

    async def probe(self) -> Probe:
        try:
            refuse_network(self._settings.policy(), self.name)
            async with asyncio.timeout(PROBE_S):
                await tried(self.start)
        except TimeoutError:
            return Probe("container", False, f"a container was not ready within {PROBE_S:g} s")
        except (SandboxUnavailable, SandboxLost, ToolFailed, OSError) as error:
            return Probe("container", False, str(error))
        return Probe("container", True, "podman with runc, as root")

    async def start(self, spec: SandboxSpec) -> Sandbox:
        refuse_network(spec.policy, self.name)
        podman = await asyncio.to_thread(_means)
        checked_spec(spec)
        try:
            return await asyncio.shield(asyncio.to_thread(self._made, podman, spec))
        except (OSError, Unmeasurable) as error:
            raise SandboxUnavailable(f"a container's directories cannot be prepared: {error}") from error

    def _made(self, podman: Podman, spec: SandboxSpec) -> "ContainerSandbox":
        if not self._swept:
            self._swept = True
            sweep()
        root = _root(self._settings)
        uid, claim = claim_uid(self._settings.uid_base)
        home = make_home()
        temporary, users = home.path / "tmp", home.path / "etc"
        temporary.mkdir(mode=0o700)
        users.mkdir()
        for name, text in zip(USERS, (_PASSWD, _GROUP), strict=True):
            (users / name).write_text(text.format(uid=uid))
            (users / name).chmod(0o644)
        (home.path / GROUPS_FILE).write_text("\n".join(group_paths(home.path.name)))
        directories = [open_directory(spec.workspace), open_directory(str(temporary))]
        for directory in directories:
            give(directory, uid)
        container = Container(
            home.path.name, str(root), spec.workspace, spec.input, str(temporary), str(users),
            filter_program(platform.machine(), counted=True, timed=True),
            spec.mounts, uid, spec.policy,
        )  # fmt: skip
        watch = Watch(directories, spec.policy.disk_bytes, None)
        return ContainerSandbox(podman, container, home, watch, claim, directories)


def _means() -> Podman:
    """Raises `SandboxUnavailable`."""
    podman = find_podman()
    if os.geteuid() != 0:
        raise SandboxUnavailable(
            "podman without root bounds neither memory nor processes on every machine; use bubblewrap, which does"
        )
    return podman


def _root(settings: SandboxSettings) -> Path:
    image = find_image(Path(settings.image_dir))
    check_image(image)
    return unpacked_root(image)


class ContainerSandbox(CommandedSandbox):
    """Implements `Sandbox`. A guard process ends its container when xclaw is gone."""

    def __init__(
        self, podman: Podman, container: Container, home: Home, watch: Watch, claim: socket.socket,
        directories: list[int],
    ) -> None:  # fmt: skip
        super().__init__("container", container.policy)
        self._podman = podman
        self._container = container
        self._home = home
        self._watch = watch
        self._claim = claim
        self._directories = directories
        self._number = 0
        self._guard: asyncio.subprocess.Process | None = None
        self._running: asyncio.Task[SandboxExit] | None = None
        self._is_closed = False
        self._ending: asyncio.Task[None] | None = None

    async def close(self) -> None:
        self._is_closed = True
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end())
        await asyncio.shield(self._ending)

    async def _run_alone(self, command: SandboxCommand, output: Output, limit: int) -> SandboxExit:
        if self._is_closed:
            raise SandboxLost("The sandbox is gone: it was closed.")
        await self._be_guarded()
        self._number += 1
        environment = environment_inside(self._policy.environment) | dict(command.environment)
        words = run_arguments(self._container, self._number, command.timeout_s, list(environment.items()))
        words += [absolute_inside(command.directory), *command.argv]
        name = self._container.name
        started = Started(self._podman, f"{LABEL}={name}", f"{name}-{self._number}", name, words, self._watch)
        work = ContainerCommand(started, output, limit).run(command.stdin, command.timeout_s)
        running = self._running = asyncio.get_running_loop().create_task(work)
        try:
            await asyncio.wait([running])
        except asyncio.CancelledError:
            running.cancel()
            await asyncio.wait([running])
            raise
        if self._is_closed or running.cancelled():
            raise SandboxLost("The sandbox is gone: it was closed.")
        return running.result()

    async def _be_guarded(self) -> None:
        if self._guard is not None and self._guard.returncode is None:
            return
        self._guard = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-S", str(Path(guard.__file__))),
            *(self._podman.program, f"{LABEL}={self._container.name}"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=self._podman.environment,
            pass_fds=(self._home.lock,),
            start_new_session=True,
        )

    async def _end(self) -> None:
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])
        if self._guard is not None:
            assert self._guard.stdin is not None
            self._guard.stdin.close()
            await self._guard.wait()
        await asyncio.to_thread(self._remove)

    def _remove(self) -> None:
        for directory in self._directories:
            os.close(directory)
        remove_groups(group_paths(self._container.name))
        self._home.remove()
        self._claim.close()
