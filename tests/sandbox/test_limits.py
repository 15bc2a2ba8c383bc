"""Bounds hold against whoever tries to exceed them (SPEC F3)."""

import asyncio

import pytest

from sandbox import hidden_attacks, limit_attacks
from sandbox.opening import BACKENDS, opener
from xclaw.testing.sandbox_conformance import check_name
from xclaw.testing.sandbox_harness import SandboxCheck

ISOLATING = [name for name in BACKENDS if name != "host"]


@pytest.mark.parametrize("backend", ISOLATING)
@pytest.mark.parametrize("attack", [*limit_attacks.ATTACKS, *hidden_attacks.ATTACKS], ids=check_name)
def test_a_bound_holds(attack: SandboxCheck, backend: str) -> None:
    """SPEC F3."""
    asyncio.run(attack(opener(BACKENDS[backend])))
