"""The backends that need nothing but this machine do what any sandbox must (SPEC F3)."""

import asyncio

import pytest

from sandbox.opening import BACKENDS, opener
from xclaw.testing.sandbox_conformance import SANDBOX_CHECKS, check_name
from xclaw.testing.sandbox_harness import SandboxCheck


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("check", SANDBOX_CHECKS, ids=check_name)
def test_conforms(check: SandboxCheck, backend: str) -> None:
    """SPEC F3."""
    asyncio.run(check(opener(BACKENDS[backend])))
