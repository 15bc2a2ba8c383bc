"""Virtual machines with the processor's help do what any sandbox must, where a machine boots one (SPEC F3)."""

import asyncio
from contextlib import AbstractAsyncContextManager
from functools import cache

import pytest

from sandbox.machines import BUILDING_S, SETTINGS, image, started
from xclaw.contracts.sandbox import Probe, SandboxPolicy
from xclaw.sandbox.kvm.backend import KvmBackend
from xclaw.testing.sandbox_conformance import SANDBOX_CHECKS, check_name
from xclaw.testing.sandbox_harness import Opened, SandboxCheck

pytestmark = pytest.mark.timeout(BUILDING_S)


@cache
def _probe() -> Probe:
    return asyncio.run(KvmBackend(SETTINGS, "kvm").probe())


@pytest.fixture(autouse=True, scope="module")
def working() -> None:
    image()
    if not _probe().works:
        pytest.skip(f"kvm: {_probe().detail}")


def opened(policy: SandboxPolicy) -> AbstractAsyncContextManager[Opened]:
    return started(policy, KvmBackend(SETTINGS, "kvm"))


@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=check_name)
def test_a_machine_of_the_processor_conforms(check: SandboxCheck) -> None:
    """SPEC F3."""
    asyncio.run(check(opened))
