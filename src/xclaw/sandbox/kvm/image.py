"""Images of micro-VMs on disk: where one lies, and whether it is whole.

    IMAGE_DIR/VERSION/manifest.json   what follows, with size and SHA-256 of each; written last
                      vmlinux         the kernel
                      initrd          modules, busybox, the agent
                      base.cpio       the part of the initrd that depends on packages only
                      rootfs.sqfs     the guest's read-only root
                      rootfs/         the same unpacked, for containers, once one has been wanted
VERSION is made of the recipe and of the packages' versions.
"""

import contextlib
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import SandboxUnavailable

MANIFEST = "manifest.json"
FILES = ("vmlinux", "initrd", "base.cpio", "rootfs.sqfs")
PACKAGES = ("python3", "git", "ripgrep", "jq", "make", "patch", "file", "procps")
"""In the guest, beside Debian's smallest system."""
_IN_CONTAINERS = (
    "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32", "etc/alternatives", "etc/ld.so.cache", "etc/localtime",
)  # fmt: skip
"""What is unpacked of the root: programs, and nothing that tells of a system."""
_RECIPE = 2
"""Raised when the way of building changes what is built."""


@dataclass(frozen=True, slots=True)
class Image:
    """One that is whole."""

    directory: Path
    recipe: str
    versions: str
    """Of the packages that it was built from, in short."""
    kernel: str
    built_at: str
    """UTC, ISO 8601."""

    def path(self, name: str) -> str:
        return str(self.directory / name)

    @property
    def size_bytes(self) -> int:
        return sum((self.directory / name).stat().st_size for name in FILES)


def guest_files() -> tuple[bytes, dict[str, bytes]]:
    """The guest's first script, and the modules of its agent by name."""
    here = resources.files("xclaw.sandbox.kvm")
    agent = {name: here.joinpath(name).read_bytes() for name in ("guest_agent.py", "guest_system.py")}
    return here.joinpath("guest_init.sh").read_bytes(), agent


def base_recipe() -> str:
    """What the slow part of an image depends on, in short, packages' versions aside."""
    return _digest(json.dumps([_RECIPE, PACKAGES]).encode())


def recipe() -> str:
    """What an image depends on, in short, packages' versions aside."""
    init, agent = guest_files()
    return _digest(base_recipe().encode(), init, *agent.values())


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:12]


def sha256_of(path: Path) -> str:
    """Raises `OSError`."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(directory: Path, recipe_key: str, versions: str, kernel: str, built_at: str) -> None:
    """Say of the files of `directory` that they are an image. Raises `OSError`."""
    files = {
        name: {"bytes": (directory / name).stat().st_size, "sha256": sha256_of(directory / name)}
        for name in FILES
    }
    content = {
        "recipe": recipe_key,
        "base": base_recipe(),
        "versions": versions,
        "kernel": kernel,
        "built_at": built_at,
        "files": files,
    }
    with (directory / MANIFEST).open("w", encoding="utf-8") as file:
        json.dump(content, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def images(image_dir: Path) -> list[tuple[Image, str]]:
    """What says of itself that it is an image, with the recipe of its base; the newest first."""
    found: list[tuple[Image, str]] = []
    for path in image_dir.glob(f"*/{MANIFEST}"):
        if path.parent.name.startswith("."):
            continue
        try:
            content = cast("dict[str, str]", json.loads(path.read_bytes()))
            image = Image(
                path.parent, content["recipe"], content["versions"], content["kernel"], content["built_at"]
            )
            found.append((image, content["base"]))
        except (OSError, ValueError, KeyError, TypeError):
            continue
    return sorted(found, key=lambda pair: pair[0].built_at, reverse=True)


def find_image(image_dir: Path) -> Image:
    """The newest image of this version of xclaw.

    Raises:
        SandboxUnavailable: there is none.
    """
    wanted = recipe()
    there = images(image_dir)
    for image, _ in there:
        if image.recipe == wanted:
            return image
    what = "the image is of another version of xclaw" if there else "there is no image"
    raise SandboxUnavailable(f"{what} in {image_dir}. Build one: `xclaw sandbox build`.")


_checked: dict[str, tuple[tuple[int, int, int], ...]] = {}
"""What the files of an image looked like when their content was right."""


def check_image(image: Image) -> None:
    """Compare every file with the manifest: its content once per process, and again when it has changed.

    Raises:
        SandboxUnavailable: something is missing or is not what was built.
    """
    repair = f"Remove {image.directory} and build it again: `xclaw sandbox build`."
    try:
        looks = tuple(_look(image.directory / name) for name in FILES)
        if _checked.get(str(image.directory)) == looks:
            return
        manifest = cast("dict[str, object]", json.loads((image.directory / MANIFEST).read_bytes()))
        files = cast("dict[str, dict[str, object]]", manifest["files"])
        for name in FILES:
            if sha256_of(image.directory / name) != files[name]["sha256"]:
                raise SandboxUnavailable(f"{image.directory / name} is not what was built. {repair}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SandboxUnavailable(f"the image is damaged: {error}. {repair}") from error
    _checked[str(image.directory)] = looks


def _look(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return status.st_ino, status.st_size, status.st_mtime_ns


def unpacked_root(image: Image) -> Path:
    """The root of an image as a directory; unpacked when it is first wanted, as root.

    Raises:
        SandboxUnavailable: that is not possible.
    """
    root = image.directory / "rootfs"
    if root.is_dir():
        return root
    unpacking = Path(tempfile.mkdtemp(prefix=".unpacking-", dir=image.directory))
    try:
        done = subprocess.run(
            [
                "unsquashfs",
                "-quiet",
                "-no-progress",
                "-dest",
                str(unpacking / "root"),
                image.path("rootfs.sqfs"),
                *_IN_CONTAINERS,
            ],
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            said = done.stderr.decode("utf-8", "replace").strip()[-300:]
            raise SandboxUnavailable(f"the image cannot be unpacked: {said}")
        (unpacking / "root").chmod(0o755)
        with contextlib.suppress(OSError):  # somebody else was quicker
            (unpacking / "root").rename(root)
    except OSError as error:
        raise SandboxUnavailable(f"the image cannot be unpacked: {error}") from error
    finally:
        shutil.rmtree(unpacking, ignore_errors=True)
    return root
