"""What cannot be a sandbox is refused before anything is started, with what to do (SPEC F3)."""

import asyncio
import shutil
from pathlib import Path

import pytest

from sandbox.opening import BACKENDS, opener
from xclaw.contracts.errors import SandboxUnavailable
from xclaw.contracts.sandbox import Mount, SandboxSpec
from xclaw.sandbox.bubblewrap.backend import BubblewrapBackend
from xclaw.sandbox.linux.call_filter import filter_program, has_filter
from xclaw.sandbox.settings import SandboxSettings
from xclaw.testing.sandbox_harness import POLICY, run_inside


def refused(spec: SandboxSpec) -> str:
    async def main() -> str:
        with pytest.raises(SandboxUnavailable) as error:
            await BubblewrapBackend(SandboxSettings()).start(spec)
        return str(error.value)

    return asyncio.run(main())


@pytest.mark.parametrize(
    "target",
    [
        "relative",
        "/",
        "/workspace",
        "/workspace/in",
        "/input",
        "/usr/local",
        "/proc/x",
        "/a/../usr",
        "/a//b",
        "/tmp/x",
        "/etc",
    ],
)
def test_a_mount_goes_to_a_place_of_its_own(tmp_path: Path, target: str) -> None:
    """SPEC F3."""
    spec = SandboxSpec("0a1b2c", str(tmp_path), str(tmp_path), (Mount(str(tmp_path), target),))
    assert target in refused(spec)


def test_directories_must_be_there(tmp_path: Path) -> None:
    """SPEC F3."""
    there, none = str(tmp_path), str(tmp_path / "none")
    assert none in refused(SandboxSpec("0a1b2c", none, there))
    assert none in refused(SandboxSpec("0a1b2c", there, none))
    assert none in refused(SandboxSpec("0a1b2c", there, there, (Mount(none, "/project"),)))
    assert "relative" in refused(SandboxSpec("0a1b2c", "relative", there))


def test_without_bubblewrap_it_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """SPEC F3: the probe says the same, and raises nothing."""
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install bubblewrap" in refused(SandboxSpec("0a1b2c", str(tmp_path), str(tmp_path)))
    probe = asyncio.run(BubblewrapBackend(SandboxSettings()).probe())
    assert (probe.works, probe.backend) == (False, "bubblewrap")
    assert "apt-get install bubblewrap" in probe.detail


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("exit 0", "too old"),
        ("echo bubblewrap 0.4.1", "0.4.1 is too old"),
        ("echo bubblewrap 0.8.0; echo no >&2; exit 1", "bubblewrap failed: bubblewrap 0.8.0"),
        ("echo bubblewrap 0.8.0; exit 7", "bubblewrap failed"),
    ],
)
def test_a_bubblewrap_that_is_none_does_not_work(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, reason: str
) -> None:
    """SPEC F3: the reason is what it said."""
    monkeypatch.setenv("PATH", str(tmp_path))
    fake = tmp_path / "bwrap"
    fake.write_text(f"#!/bin/sh\n{script}\n")
    for path in (fake, *[path for path in fake.parents if path.is_relative_to(tmp_path.parents[2])]):
        path.chmod(0o755)
    probe = asyncio.run(BubblewrapBackend(SandboxSettings()).probe())
    assert not probe.works
    assert reason in probe.detail


@pytest.mark.parametrize("version", ["0.5.0", "0.7.0", "0.11.0"])
def test_each_version_is_asked_for_what_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str
) -> None:
    """SPEC F3: whatever it cannot do, nothing is open because of it."""
    real = shutil.which("bwrap")
    fake = tmp_path / "bwrap"
    fake.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo bubblewrap {version} || exec {real} "$@"\n')
    for path in (fake, *[path for path in fake.parents if path.is_relative_to(tmp_path.parents[2])]):
        path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    async def main() -> None:
        async with opener(BubblewrapBackend(SandboxSettings()))(POLICY) as opened:
            said = await run_inside(
                opened.sandbox,
                "unshare -Ur true && echo users; (echo x >/dev/shm/x) && df -k /dev/shm | tail -1 | (read a size b; echo $size)",
            )
            assert b"users" not in said.output
            sizes = [int(line) for line in said.text.splitlines() if line.isdigit()]
            assert sizes == ([] if version == "0.5.0" else [65_536])

    asyncio.run(main())


def test_a_mount_is_seen_and_cannot_be_written(tmp_path: Path) -> None:
    """SPEC F3."""
    tmp_path.chmod(0o755)
    (tmp_path / "file").write_text("mounted")

    async def main() -> None:
        async with opener(BACKENDS["bubblewrap"], (Mount(str(tmp_path), "/project"),))(POLICY) as opened:
            said = await run_inside(opened.sandbox, "cat /project/file; echo x >/project/file; echo $?")
            assert said.output.startswith(b"mounted")
            assert (tmp_path / "file").read_text() == "mounted"

    asyncio.run(main())


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_a_filter_only_jumps_within_itself(machine: str) -> None:
    """SPEC F3: the kernel would refuse it. Both machines, whatever this one is."""
    for bounded in (False, True):
        program = filter_program(machine, counted=bounded, timed=bounded)
        assert len(program) % 8 == 0
        steps = [program[at : at + 8] for at in range(0, len(program), 8)]
        assert len(steps) < 4096
        for index, step in enumerate(steps):
            if step[0] & 7 == 5:
                assert index + 1 + max(step[2], step[3]) < len(steps)
        assert steps[-1][0] == 6


def test_there_is_no_filter_for_other_machines() -> None:
    """SPEC F3: then there is no sandbox either."""
    assert not has_filter("riscv64")
