"""Bounds hold against whoever tries to exceed them (SPEC F3)."""

import asyncio

import pytest

from sandbox.limit_attacks import ATTACKS
from sandbox.opening import BACKENDS, opener
from xclaw.testing.sandbox_conformance import check_name
from xclaw.testing.sandbox_harness import SandboxCheck

ISOLATING = [name for name in BACKENDS if name != "host"]


@pytest.mark.parametrize("backend", ISOLATING)
@pytest.mark.parametrize("attack", ATTACKS, ids=check_name)
def test_a_bound_holds(attack: SandboxCheck, backend: str) -> None:
    """SPEC F3."""
    asyncio.run(attack(opener(BACKENDS[backend])))
