"""Images: whole or none, checked before they are used, and nothing of this machine in them (SPEC F3)."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sandbox.machines import BUILDING_S, image
from xclaw.contracts.errors import SandboxUnavailable
from xclaw.sandbox.kvm.build import build_image
from xclaw.sandbox.kvm.image import FILES, MANIFEST, check_image, find_image, guest_files
from xclaw.sandbox.kvm.kernel import archive, unwrapped_kernel

pytestmark = pytest.mark.timeout(BUILDING_S)
PARENT = """
import sys
from pathlib import Path
from xclaw.sandbox.kvm.build import build_image
build_image(Path(sys.argv[1]), lambda line: print(line, flush=True))
"""


def copied(to: Path) -> Path:
    """An image directory with the image in it, whose files may be changed."""
    built = image()
    directory = to / built.directory.name
    directory.mkdir()
    for name in (*FILES, MANIFEST):
        content = (built.directory / name).read_bytes()
        (directory / name).write_bytes(content)
    return directory


def test_an_image_is_found_and_is_what_was_built(tmp_path: Path) -> None:
    copied(tmp_path)
    found = find_image(tmp_path)
    check_image(found)
    assert found.size_bytes < 250_000_000
    assert re.fullmatch(r"\d+\.\d+\.\d+-\d+-amd64", found.kernel)


@pytest.mark.parametrize("name", FILES)
def test_an_image_that_was_changed_is_refused(tmp_path: Path, name: str) -> None:
    """One byte of any file, and also after the image has been found good."""
    directory = copied(tmp_path)
    check_image(find_image(tmp_path))
    with (directory / name).open("r+b") as file:
        file.seek(1000)
        byte = file.read(1)
        file.seek(1000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(SandboxUnavailable, match=rf"{name} is not what was built.*xclaw sandbox build"):
        check_image(find_image(tmp_path))


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"recipe": 1}', b"\xff"])
def test_what_has_no_manifest_is_no_image(tmp_path: Path, content: bytes) -> None:
    directory = copied(tmp_path)
    (directory / MANIFEST).write_bytes(content)
    with pytest.raises(SandboxUnavailable, match=r"Build one: `xclaw sandbox build`"):
        find_image(tmp_path)


def test_a_file_that_is_gone_is_noticed(tmp_path: Path) -> None:
    directory = copied(tmp_path)
    found = find_image(tmp_path)
    (directory / "vmlinux").unlink()
    with pytest.raises(SandboxUnavailable, match="damaged"):
        check_image(found)


def test_a_build_that_is_killed_leaves_nothing_that_passes_for_an_image(tmp_path: Path) -> None:
    """With `kill -9`, in the middle of the packages; its processes and mounts go with it."""
    image()
    source = str(Path(__file__).parents[2] / "src")
    with subprocess.Popen(
        [sys.executable, "-c", PARENT, str(tmp_path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": source},
    ) as parent:
        assert parent.stdout is not None
        for line in parent.stdout:
            if "extracting" in line:
                os.kill(parent.pid, signal.SIGKILL)
                break
        parent.stdout.read()  # until all that were started are gone
    assert parent.returncode == -signal.SIGKILL
    with pytest.raises(SandboxUnavailable, match="there is no image"):
        find_image(tmp_path)
    mounts = Path("/proc/self/mounts").read_text()
    assert "mmdebstrap" not in mounts
    assert str(tmp_path) not in mounts


def test_what_a_killed_build_left_is_removed_by_the_next(tmp_path: Path) -> None:
    directory = copied(tmp_path)
    left = tmp_path / ".building-abc"
    (left / "packages").mkdir(parents=True)
    found = build_image(tmp_path, lambda _line: None)
    assert found.directory == directory
    assert not left.exists()


def test_an_image_holds_nothing_of_this_machine() -> None:
    """Neither where it gets its packages from, nor its name."""
    built = image()
    listed = subprocess.run(
        ["unsquashfs", "-l", built.path("rootfs.sqfs")], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "squashfs-root/usr/bin/python3" in listed
    for name in (
        "etc/apt/sources.list",
        "etc/apt/sources.list.d",
        "etc/apt/apt.conf.d",
        "etc/machine-id",
        "root/.ssh",
    ):
        assert f"squashfs-root/{name}" not in listed, name
    for name, text in (("etc/hostname", "sandbox\n"), ("etc/resolv.conf", "")):
        said = subprocess.run(
            ["unsquashfs", "-cat", built.path("rootfs.sqfs"), name],
            capture_output=True,
            text=True,
            check=True,
        )
        assert said.stdout == text


def test_the_kernel_is_unwrapped_and_nothing_else_is() -> None:
    assert Path(image().path("vmlinux")).read_bytes()[:4] == b"\x7fELF"
    with pytest.raises(SandboxUnavailable, match="no kernel for x86"):
        unwrapped_kernel(b"x" * 4096)
    with pytest.raises(SandboxUnavailable, match="compressed in a way"):
        unwrapped_kernel(b"\0" * 0x202 + b"HdrS" + b"\0" * 4096)


def test_an_archive_is_one_that_cpio_reads(tmp_path: Path) -> None:
    init, modules = guest_files()
    agent = modules["guest_agent.py"]
    (tmp_path / "archive").write_bytes(
        archive({"a/init": (0o755, init), "b": (0o644, agent)}, [("a/sh", "init")])
    )
    with (tmp_path / "archive").open("rb") as file:
        subprocess.run(["busybox", "cpio", "-idm"], stdin=file, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "a/init").read_bytes() == init
    assert (tmp_path / "a/init").stat().st_mode & 0o777 == 0o755
    assert (tmp_path / "b").read_bytes() == agent
    assert (tmp_path / "a/sh").readlink() == Path("init")
