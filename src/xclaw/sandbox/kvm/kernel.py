"""What a guest boots from: the kernel without its wrapping, the modules that it needs, the initrd."""

import gzip
import lzma
import re
import struct
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath

from xclaw.contracts.errors import SandboxUnavailable

MODULES = (
    "virtio_mmio", "virtio_blk", "virtio_console", "virtio-rng", "squashfs", "overlay", "9pnet_virtio", "9p",
)  # fmt: skip
"""Modules that a guest loads, in this order, each after those that it depends on."""
_MAGIC = {b"\xfd7zXZ\x00": "xz", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}


def unwrapped_kernel(image: bytes) -> bytes:
    """The kernel itself out of a compressed one for x86, which starts it faster.

    Raises:
        SandboxUnavailable: it is none, or compressed in a way that is not known.
    """
    if image[0x202:0x206] != b"HdrS":
        raise SandboxUnavailable("the kernel package holds no kernel for x86.")
    sectors = image[0x1F1] or 4
    offset, length = struct.unpack_from("<II", image, 0x248)
    start = (sectors + 1) * 512 + offset
    payload = image[start : start + length]
    kind = next((name for magic, name in _MAGIC.items() if payload.startswith(magic)), None)
    if kind == "xz":
        return lzma.LZMADecompressor().decompress(payload)
    if kind == "gzip":
        return gzip.decompress(payload[:-4])
    if kind == "zstd":
        return subprocess.run(["zstd", "-dcq"], input=payload[:-4], capture_output=True, check=True).stdout
    raise SandboxUnavailable("the kernel is compressed in a way that xclaw does not know.")


def needed_modules(directory: Path) -> list[tuple[str, bytes]]:
    """Name and content of `MODULES` and of what they depend on, in the order of loading.

    What is not there is taken to be built into the kernel.
    """
    there = {_plain(path.name.partition(".ko")[0]): path for path in directory.rglob("*.ko*")}
    found: dict[str, bytes] = {}

    def add(name: str) -> None:
        path = there.get(_plain(name))
        if path is None or _plain(name) in found:
            return
        content = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        depends = re.search(rb"\0depends=([^\0]*)\0", content)
        for other in depends[1].decode().split(",") if depends is not None else []:
            add(other)
        found[_plain(name)] = content

    for name in MODULES:
        add(name)
    return [(f"{name}.ko", content) for name, content in found.items()]


def _plain(name: str) -> str:
    return name.replace("-", "_")


def archive(files: Mapping[str, tuple[int, bytes]], links: Iterable[tuple[str, str]] = ()) -> bytes:
    """A cpio archive as the kernel unpacks it; `files` by path with mode and content, and the directories
    above them."""
    parts: list[bytes] = []
    folders = {
        str(above) for path in files for above in PurePosixPath(path).parents if above != PurePosixPath(".")
    }
    entries = [(name, 0o040755, b"") for name in sorted(folders)]
    entries += [
        (name, 0o100000 | mode if mode < 0o40000 else mode, body) for name, (mode, body) in files.items()
    ]
    entries += [(name, 0o120777, target.encode()) for name, target in links]
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")], start=1):
        path = name.encode() + b"\0"
        head = "070701" + "".join(
            f"{value:08x}" for value in (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        )
        parts += [_padded(head.encode() + path), _padded(content)]
    return b"".join(parts)


def _padded(content: bytes) -> bytes:
    return content + b"\0" * (-len(content) % 4)


def base_archive(modules: Iterable[tuple[str, bytes]], busybox: bytes) -> bytes:
    """The part of the initrd that depends on packages only."""
    loaded = list(modules)
    files = {f"modules/{name}": (0o644, content) for name, content in loaded}
    files["modules/order"] = (0o644, "".join(f"{name}\n" for name, _ in loaded).encode())
    files["bin/busybox"] = (0o755, busybox)
    for folder in ("proc", "dev", "lower", "root"):
        files[folder] = (0o040755, b"")
    return archive(files, [("bin/sh", "busybox")])


def own_archive(init: bytes, agent: Mapping[str, bytes]) -> bytes:
    """The part of the initrd that is xclaw's; the kernel unpacks one after the other. The agent's modules
    lie as they do in the package."""
    modules = {f"agent/xclaw/sandbox/kvm/{name}": (0o644, content) for name, content in agent.items()}
    return archive({"init": (0o755, init), **modules})
