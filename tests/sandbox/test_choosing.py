"""The sandbox that is used is the one that was asked for, or the strongest that works (SPEC F3)."""

import asyncio

import pytest

from xclaw.contracts.errors import SandboxUnavailable
from xclaw.contracts.sandbox import BackendName, Probe, Sandbox, SandboxChoice, SandboxSpec
from xclaw.sandbox.building import backends
from xclaw.sandbox.choosing import choose, probe_all, probed
from xclaw.sandbox.settings import SandboxSettings


class Backend:
    """Works or does not."""

    def __init__(self, name: BackendName, works: bool) -> None:
        self.name: BackendName = name
        self.probes = 0
        self._works = works

    async def probe(self) -> Probe:
        self.probes += 1
        return Probe(self.name, self._works, "fine" if self._works else f"why not {self.name}.")

    async def start(self, spec: SandboxSpec) -> Sandbox:
        raise NotImplementedError(spec)


def chosen(choice: SandboxChoice, **works: bool) -> BackendName:
    names: tuple[BackendName, ...] = ("host", "tcg", "container", "bubblewrap", "kvm")
    there = [Backend(name, works[name]) for name in names if name in works]
    return asyncio.run(choose(choice, there)).name


def test_auto_is_the_strongest_that_works() -> None:
    """SPEC F3."""
    assert chosen("auto", host=True, tcg=True, container=True, bubblewrap=True, kvm=True) == "kvm"
    assert chosen("auto", host=True, tcg=True, container=True, bubblewrap=True, kvm=False) == "bubblewrap"
    assert chosen("auto", host=True, tcg=True, container=True, bubblewrap=False, kvm=False) == "container"


def test_auto_is_never_the_host_nor_an_emulated_machine() -> None:
    """SPEC F3: it refuses, with every reason."""
    with pytest.raises(SandboxUnavailable) as refused:
        chosen("auto", host=True, tcg=True, container=False, bubblewrap=False, kvm=False)
    for reason in ("why not kvm", "why not bubblewrap", "why not container"):
        assert reason in str(refused.value)


@pytest.mark.parametrize("choice", ["host", "tcg", "container", "bubblewrap", "kvm"])
def test_the_one_that_was_asked_for_is_used_or_none(choice: SandboxChoice) -> None:
    """SPEC F3: nothing else in its place, be it stronger or weaker."""
    works = dict.fromkeys(("host", "tcg", "container", "bubblewrap", "kvm"), True)
    assert chosen(choice, **works) == choice
    with pytest.raises(SandboxUnavailable, match=rf"why not {choice}\. Nothing weaker"):
        chosen(choice, **{**works, choice: False})


def test_a_backend_that_is_not_there_is_refused_by_name() -> None:
    """SPEC F3."""
    with pytest.raises(SandboxUnavailable, match="kvm: not part"):
        chosen("kvm", host=True)


def test_a_probe_is_made_once() -> None:
    """SPEC F3: it starts a sandbox."""
    backend = Backend("bubblewrap", True)

    async def main() -> None:
        for _ in range(3):
            assert (await probed(backend)).works
            await probe_all([backend])

    asyncio.run(main())
    assert backend.probes == 1


def test_each_backend_of_this_installation_is_there_once() -> None:
    """SPEC F3."""
    names = [backend.name for backend in backends(SandboxSettings())]
    assert sorted(names) == ["bubblewrap", "container", "host", "kvm", "tcg"]


def test_settings_make_the_policy() -> None:
    """SPEC F3."""
    settings = SandboxSettings(
        network=("a.example",), cpus=0.5, memory_bytes=1, environment={"B": "2", "A": "1"}
    )
    policy = settings.policy()
    assert (policy.network, policy.cpus, policy.memory_bytes) == (("a.example",), 0.5, 1)
    assert policy.environment == (("A", "1"), ("B", "2"))
