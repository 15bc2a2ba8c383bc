"""What a hostile command tries does not work in a sandbox (SPEC F3); on the host most of it does."""

from collections.abc import Generator

import pytest

from sandbox.hostile_probe import CASES
from sandbox.hostile_scene import Scene, hostile_scene
from sandbox.opening import BACKENDS

ISOLATING = [name for name in BACKENDS if name != "host"]
HOST_LETS = (
    "abstract_socket", "command_lines", "environments_of_processes", "hard_link", "host_by_loopback", "interfaces",
    "list_homes", "read_by_dots", "read_by_link", "read_other_worker", "read_secret", "see_processes",
    "set_user_id_files", "shared_memory", "signals", "socket_by_path", "write_by_link", "write_outside",
)  # fmt: skip
"""Attacks that harm nothing when they work, and do work for any user without a sandbox."""


@pytest.fixture(scope="module", params=ISOLATING)
def scene(request: pytest.FixtureRequest) -> Generator[Scene]:
    with hostile_scene(BACKENDS[request.param]) as opened:
        yield opened


@pytest.fixture(scope="module")
def bare() -> Generator[Scene]:
    with hostile_scene(BACKENDS["host"]) as opened:
        yield opened


@pytest.mark.parametrize("name", CASES)
def test_an_attack_from_inside_is_blocked(scene: Scene, name: str) -> None:
    """SPEC F3, J1."""
    scene.repel(name)


@pytest.mark.parametrize("name", HOST_LETS)
def test_the_attack_works_where_nothing_keeps_it_in(bare: Scene, name: str) -> None:
    """So that the test above can fail."""
    assert bare.attack(name).escaped
