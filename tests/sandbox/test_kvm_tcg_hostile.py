"""What a hostile command tries does not work in a virtual machine (SPEC F3)."""

from collections.abc import Generator

import pytest

from sandbox.hostile_probe import CASES
from sandbox.hostile_scene import Scene, hostile_scene
from sandbox.machines import BUILDING_S, emulated

pytestmark = [pytest.mark.timeout(BUILDING_S), pytest.mark.xdist_group("hostile machine")]


@pytest.fixture(scope="module")
def scene() -> Generator[Scene]:
    with hostile_scene(emulated()) as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_an_attack_from_inside_a_machine_is_blocked(scene: Scene, name: str) -> None:
    """SPEC F3, J1."""
    verdict = scene.attack(name)
    assert not verdict.escaped, verdict.detail
