"""A virtual machine as the rest of xclaw has it: one that is warm, and one that is a run's."""

import base64
import math
import platform
import time

from xclaw.contracts.errors import SandboxLost, ToolFailed
from xclaw.contracts.sandbox import (
    INPUT,
    WORKSPACE,
    BackendName,
    SandboxCommand,
    SandboxExit,
    SandboxPolicy,
    SandboxSpec,
)
from xclaw.sandbox.commanded import CommandedSandbox
from xclaw.sandbox.environment import environment_inside
from xclaw.sandbox.files import absolute_inside
from xclaw.sandbox.kvm.guest_line import Failed
from xclaw.sandbox.kvm.machine import JobEnd, VirtualMachine
from xclaw.sandbox.linux.call_filter import filter_program
from xclaw.sandbox.output import Output
from xclaw.sandbox.specs import checked_spec

TMP_BYTES = 134_217_728
"""The most that /tmp can hold: it lies in the guest's memory."""
PING_S = 5.0
_PERIOD_US = 100_000


class WarmMachine:
    """Implements `WarmSandbox`."""

    def __init__(self, machine: VirtualMachine, backend: BackendName) -> None:
        self.machine = machine
        self._backend: BackendName = backend

    async def ping(self) -> bool:
        try:
            end = await self.machine.run({"op": "ping"}, _ignored, 0, PING_S)
        except SandboxLost:
            return False
        return isinstance(end, JobEnd) and not end.over

    async def take(self, spec: SandboxSpec) -> "MachineSandbox":
        """Raises also `SandboxUnavailable`, for a spec that no machine could have."""
        checked_spec(spec)
        try:
            order, guest = _orders(spec)
            await self.machine.take(order, guest)
        except BaseException:
            await self.machine.close()
            raise
        return MachineSandbox(self.machine, self._backend, spec.policy)

    async def close(self) -> None:
        await self.machine.close()


def _orders(spec: SandboxSpec) -> tuple[dict[str, object], dict[str, object]]:
    """What the keeper and what the guest are told to make of it."""
    policy = spec.policy
    places: list[dict[str, object]] = [
        {"tag": "writable", "part": "workspace", "target": WORKSPACE, "writable": True},
        {"tag": "readable", "part": "input", "target": INPUT, "writable": False},
    ]
    for index, mount in enumerate(spec.mounts):
        places.append({"tag": "readable", "part": str(index), "target": mount.target, "writable": False})
    order: dict[str, object] = {
        "workspace": spec.workspace,
        "input": spec.input,
        "mounts": [mount.source for mount in spec.mounts],
        "disk_bytes": policy.disk_bytes,
    }
    program = filter_program(platform.machine(), counted=True, timed=True)
    guest: dict[str, object] = {
        "places": places,
        "memory": policy.memory_bytes,
        "processes": policy.processes,
        "cpu_us": max(int(policy.cpus * _PERIOD_US), 1_000),
        "tmp": min(TMP_BYTES, policy.disk_bytes),
        "filter": base64.b64encode(program).decode(),
    }
    return order, guest


class MachineSandbox(CommandedSandbox):
    """Implements `Sandbox`. A machine that does not answer in time is ended: then the sandbox is lost."""

    def __init__(self, machine: VirtualMachine, backend: BackendName, policy: SandboxPolicy) -> None:
        super().__init__(backend, policy)
        self.machine = machine

    @property
    def pid(self) -> int:
        """Of the keeper: everything of the sandbox is below it."""
        return self.machine.keeper_pid

    async def close(self) -> None:
        await self.machine.close()

    async def _run_alone(self, command: SandboxCommand, output: Output, limit: int) -> SandboxExit:
        message: dict[str, object] = {
            "op": "run",
            "argv": command.argv,
            "directory": absolute_inside(command.directory),
            "environment": environment_inside(self._policy.environment) | dict(command.environment),
            "limit": limit,
        }
        began = time.monotonic()
        self.machine.watch()
        end = await self.machine.run(message, output, limit, command.timeout_s, command.stdin)
        disk_over = await self.machine.settle()
        if isinstance(end, Failed):
            raise ToolFailed(f"the command could not be started: {end.text}")
        ended = end.over or ("disk" if disk_over else end.ended.ended)
        return SandboxExit(
            ended=ended,
            code=end.ended.code if ended == "exited" else None,
            left_behind=end.ended.left,
            dropped_bytes=end.dropped,
            duration_s=time.monotonic() - began,
        )


def _ignored(_content: bytes) -> None:
    """A ping has no output."""


def processors(policy: SandboxPolicy) -> int:
    return max(math.ceil(policy.cpus), 1)
