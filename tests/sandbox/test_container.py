"""A container does what any sandbox must, as far as this machine can run one (SPEC F3)."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

import pytest

from sandbox import hidden_attacks
from sandbox.hostile_probe import CASES
from sandbox.hostile_scene import Scene, hostile_scene
from sandbox.machines import BUILDING_S, SETTINGS, image
from xclaw.contracts.sandbox import Probe, SandboxPolicy, SandboxSpec
from xclaw.sandbox.container.backend import ContainerBackend
from xclaw.testing.sandbox_conformance import SANDBOX_CHECKS, check_name
from xclaw.testing.sandbox_harness import Opened, SandboxCheck

pytestmark = [pytest.mark.timeout(BUILDING_S)]
KNOWN_GAPS = frozenset({"host_settings", "list_homes", "what_users_have_together"})
"""Places that podman makes, empty, and what is the sandbox's own user's alone; see docs/sandbox.md."""


@cache
def _probe() -> Probe:
    return asyncio.run(ContainerBackend(SETTINGS).probe())


@pytest.fixture(autouse=True, scope="module")
def working() -> None:
    image()
    probe = _probe()
    if not probe.works:
        pytest.skip(f"container: {probe.detail}")


@asynccontextmanager
async def opened(policy: SandboxPolicy) -> AsyncGenerator[Opened]:
    with tempfile.TemporaryDirectory(prefix="xclaw-test-") as directory:
        workspace, inputs = Path(directory, "workspace"), Path(directory, "input")
        workspace.mkdir()
        inputs.mkdir()
        spec = SandboxSpec("0a1b2c", str(workspace), str(inputs), policy=policy)
        sandbox = await ContainerBackend(SETTINGS).start(spec)
        try:
            yield Opened(sandbox, workspace, inputs)
        finally:
            await sandbox.close()


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=check_name)
def test_a_container_conforms(check: SandboxCheck) -> None:
    """SPEC F3."""
    asyncio.run(check(opened))


@pytest.mark.parametrize("attack", hidden_attacks.ATTACKS, ids=check_name)
def test_nothing_can_be_hidden_in_a_container(attack: SandboxCheck) -> None:
    """SPEC F3."""
    asyncio.run(attack(opened))


@pytest.fixture(scope="module")
def scene(working: None) -> Generator[Scene]:
    with hostile_scene(ContainerBackend(SETTINGS)) as made:
        yield made


@pytest.mark.parametrize("name", CASES)
def test_an_attack_from_inside_a_container_is_blocked(scene: Scene, name: str) -> None:
    """SPEC F3, J1; what is known to get through is asserted to, so that the documents stay true."""
    verdict = scene.attack(name)
    assert verdict.escaped == (name in KNOWN_GAPS), verdict.detail
