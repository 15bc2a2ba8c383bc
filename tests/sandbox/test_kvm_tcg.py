"""A virtual machine does what any sandbox must (SPEC F3); it is emulated, so that this runs on any machine."""

import asyncio
from collections.abc import Generator

import pytest

from sandbox import hidden_attacks
from sandbox.machines import BUILDING_S, SharedMachine, open_machine, shared_machine
from xclaw.testing.sandbox_conformance import ENDING_CHECKS, SHARING_CHECKS, check_name
from xclaw.testing.sandbox_harness import SandboxCheck

pytestmark = [pytest.mark.timeout(BUILDING_S), pytest.mark.xdist_group("machine")]


@pytest.fixture(scope="module")
def machine() -> Generator[SharedMachine]:
    with shared_machine() as shared:
        yield shared


@pytest.mark.parametrize("check", SHARING_CHECKS, ids=check_name)
def test_a_machine_conforms(check: SandboxCheck, machine: SharedMachine) -> None:
    """SPEC F3."""
    machine.runner.run(check(machine.open))


@pytest.mark.parametrize("check", ENDING_CHECKS, ids=check_name)
def test_a_machine_of_its_own_conforms(check: SandboxCheck) -> None:
    """SPEC F3: what ends a sandbox, or uses it up."""
    asyncio.run(check(open_machine))


@pytest.mark.parametrize(
    "attack",
    [
        hidden_attacks.check_disk_without_a_first_thread,
        hidden_attacks.check_disk_by_files_that_are_only_mapped,
    ],
    ids=check_name,
)
def test_nothing_can_be_hidden_in_a_machine(attack: SandboxCheck) -> None:
    """SPEC F3."""
    asyncio.run(attack(open_machine))
