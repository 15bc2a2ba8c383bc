"""Makes sandboxes that are virtual machines, with the processor's help ("kvm") or without ("tcg")."""

import asyncio
import os
import shutil
from pathlib import Path
from typing import Literal

from xclaw.contracts.errors import SandboxLost, SandboxUnavailable, ToolFailed
from xclaw.contracts.sandbox import BackendName, Probe, Sandbox, SandboxPolicy, SandboxSpec
from xclaw.sandbox.kvm.image import Image, check_image, find_image
from xclaw.sandbox.kvm.machine import Wanted, boot_machine
from xclaw.sandbox.kvm.sandbox import WarmMachine, processors
from xclaw.sandbox.kvm.verdicts import Verdicts
from xclaw.sandbox.settings import SandboxSettings
from xclaw.sandbox.specs import refuse_network
from xclaw.sandbox.trying import tried

PROGRAM = "qemu-system-x86_64"
KVM_PROBE_S = 15.0
"""A guest that has not booted by then never will: with the processor's help it takes a second or two."""
_INSTALL = "install it (apt-get install qemu-system-x86)"
_DEVICE = Path("/dev/kvm")


class KvmBackend:
    """Implements `WarmBackend`, twice: as "kvm" and as "tcg"."""

    def __init__(self, settings: SandboxSettings, accelerator: Literal["kvm", "tcg"] = "kvm") -> None:
        self._settings = settings
        self._accelerator: Literal["kvm", "tcg"] = accelerator

    @property
    def name(self) -> BackendName:
        return self._accelerator

    async def probe(self) -> Probe:
        """Boots a machine, unless it is known how that went with this image since the computer was started."""
        try:
            refuse_network(self._settings.policy(), self.name)
            program, image = await asyncio.to_thread(self._means)
        except SandboxUnavailable as error:
            return Probe(self.name, False, str(error))
        verdicts = Verdicts(Path(self._settings.image_dir), self._accelerator, image, program)
        known = await asyncio.to_thread(verdicts.known)
        if known is not None:
            return known
        try:
            detail = await self._tried(image)
        except (SandboxUnavailable, SandboxLost, ToolFailed, OSError) as error:
            probe = Probe(self.name, False, str(error))
        else:
            probe = Probe(self.name, True, detail)
        await asyncio.to_thread(verdicts.remember, probe)
        return probe

    async def start(self, spec: SandboxSpec) -> Sandbox:
        warm = await self.warm(spec.policy)
        try:
            return await warm.take(spec)
        except SandboxLost as error:
            raise SandboxUnavailable(str(error)) from error

    async def warm(self, policy: SandboxPolicy) -> WarmMachine:
        return await self._booted(policy, self._settings.boot_timeout_s)

    async def _booted(self, policy: SandboxPolicy, timeout_s: float) -> WarmMachine:
        refuse_network(policy, self.name)
        program, image = await asyncio.to_thread(self._means)
        wanted = Wanted(
            self._accelerator,
            program,
            str(image.directory.resolve()),
            policy.memory_bytes,
            processors(policy),
            policy.disk_bytes,
            self._settings.uid_base,
        )
        return WarmMachine(await boot_machine(wanted, timeout_s), self.name)

    def _means(self) -> tuple[str, Image]:
        """QEMU and an image that is whole. Raises `SandboxUnavailable`."""
        program = shutil.which(PROGRAM)
        if program is None:
            raise SandboxUnavailable(f"QEMU is not installed: {_INSTALL}")
        if self._accelerator == "kvm":
            if not _DEVICE.exists():
                raise SandboxUnavailable("this machine has no /dev/kvm: virtualisation is off or not there")
            if not os.access(_DEVICE, os.R_OK | os.W_OK):
                raise SandboxUnavailable("this user may not use /dev/kvm: add it to the group `kvm`")
        image = find_image(Path(self._settings.image_dir))
        check_image(image)
        return program, image

    async def _tried(self, image: Image) -> str:
        """Boot one, and have it do something."""
        loop = asyncio.get_running_loop()
        limit = self._settings.boot_timeout_s
        if self._accelerator == "kvm":
            limit = min(limit, KVM_PROBE_S)
        began = loop.time()
        warm = await self._booted(SandboxPolicy(), limit)
        booted_s = loop.time() - began
        await tried(warm.take)
        return f"Linux {image.kernel}, booted in {booted_s:.1f} s"
