"""The program that makes containers."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import cast

from xclaw.contracts.errors import SandboxUnavailable

ASK_S = 20.0
_ENVIRONMENT: Mapping[str, str] = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
}


@dataclass(frozen=True, slots=True)
class Podman:
    program: str

    @property
    def environment(self) -> Mapping[str, str]:
        """Nothing of xclaw's own."""
        return _ENVIRONMENT

    async def ran_out(self, name: str) -> bool:
        """Whether a container was killed for its memory."""
        process = await asyncio.create_subprocess_exec(
            *(self.program, "inspect", "--type", "container", name),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=self.environment,
        )
        try:
            async with asyncio.timeout(ASK_S):
                said, _ = await process.communicate()
            found = cast("list[dict[str, dict[str, object]]]", json.loads(said))
            return found[0]["State"]["OOMKilled"] is True
        except (TimeoutError, ValueError, LookupError):
            return False
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


def find_podman() -> Podman:
    """Raises `SandboxUnavailable`."""
    program = shutil.which("podman")
    if program is None:
        raise SandboxUnavailable("podman is not installed: install it (apt-get install podman runc)")
    if shutil.which("runc") is None:
        raise SandboxUnavailable("runc is not installed: install it (apt-get install runc)")
    return Podman(program)
