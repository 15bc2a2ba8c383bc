"""Uses a workspace while another process swaps directories, links and files in it.

    PYTHONPATH=tests python -m workspaces.swap_race --tries 100000

Ends with 1 and what was shown or changed, should anything outside ever be.
"""

import argparse
import itertools
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from workspaces import swapper
from workspaces.escapes import MARK, Scene, Use
from xclaw.workspaces.settings import WorkspaceMode


@dataclass
class Outcome:
    """Of a race, by use."""

    allowed: Counter[str] = field(default_factory=Counter[str])
    refused: Counter[str] = field(default_factory=Counter[str])

    @property
    def tries(self) -> int:
        return self.allowed.total() + self.refused.total()


def race(
    root: Path,
    mode: WorkspaceMode,
    *,
    tries: int = 1 << 60,
    seconds: float = 1e9,
    used: Callable[[Scene], dict[str, Use]] = Scene.uses,
) -> Outcome:
    """Until that many tries were made or the time is over. Raises `Escaped`."""
    scene = Scene(root, mode)
    uses = used(scene)
    pairs = _pairs(scene)
    outcome = Outcome()
    deadline = time.monotonic() + seconds
    with swapping(pairs):
        for use, path in itertools.cycle([one for one in _tries(scene) if one[0] in uses]):
            allowed = scene.attempt(uses[use], path)
            (outcome.allowed if allowed else outcome.refused)[f"{use} {path}"] += 1
            if outcome.tries >= tries or time.monotonic() > deadline:
                break
    scene.check()
    return outcome


@contextmanager
def swapping(pairs: list[tuple[Path, Path]]) -> Generator[None]:
    command = [sys.executable, "-I", "-S", swapper.__file__, *(str(path) for pair in pairs for path in pair)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "ready\n"
        try:
            yield
            assert process.poll() is None, "the swapping ended before the uses did"
        finally:
            process.stdin.close()
            code = process.wait(10)
    assert code == 0, f"the swapping failed with {code}"


def _pairs(scene: Scene) -> list[tuple[Path, Path]]:
    """What changes places: each pair in a directory of its own, so that nothing outside is swapped."""
    home, out = scene.home, scene.out
    up = "/".join([".."] * (len(home.parts) - len(out.parts) + 2))
    links = {
        "directory": str(out),
        "relative": f"{up}/out",
        "process": f"/proc/self/root{out}",
        "dots": f"{home}/../../../../out",
        "above": "../..",
    }
    pairs: list[tuple[Path, Path]] = []
    for name, target in links.items():
        place = home / name / "d"
        place.mkdir(parents=True)
        (place / "a.txt").write_text(f"{MARK}file")
        (place / "deeper").mkdir()
        (place / "deeper" / "a.txt").write_text(f"{MARK}deeper")
        pairs.append(_linked(place, target))
    file = home / "file" / "a.txt"
    file.parent.mkdir()
    file.write_text(f"{MARK}file")
    pairs.append(_linked(file, str(out / "a.txt")))
    kinds = home / "kinds" / "d"
    kinds.mkdir(parents=True)
    (kinds / "a.txt").write_text(f"{MARK}file")
    kinds.with_name("other").write_text(f"{MARK}file")
    pairs.append((kinds, kinds.with_name("other")))
    chain = home / "chain" / "d"
    chain.parent.mkdir()
    chain.symlink_to("../file")
    pairs.append(_linked(chain, str(out)))
    delivered = scene.delivery / "sub"
    delivered.mkdir()
    pairs.append(_linked(delivered, str(out)))
    return pairs


def _linked(place: Path, target: str) -> tuple[Path, Path]:
    link = place.with_name("link")
    link.symlink_to(target)
    return place, link


def _tries(scene: Scene) -> list[tuple[str, str]]:
    """Every use with paths through every pair. Deliveries are few: each makes the record longer."""
    places = ("directory", "relative", "process", "dots", "above", "kinds", "chain")
    files = [f"{place}/{way}/a.txt" for place in places for way in ("d", "link")] + [
        "file/a.txt",
        "file/link",
    ]
    files += [f"{place}/d/deeper/a.txt" for place in places[:5]]
    directories = [f"{place}/{way}" for place in places for way in ("d", "link", "d/deeper", ".")]
    tries = [(use, path) for path in files for use in ("read", "open", "edit", "write")]
    tries += [(use, path) for path in directories for use in ("list", "open", "search")]
    tries += [("write", f"{place}/d/new.txt") for place in places]
    tries += [("read", f"{scene.own.shown_dir}/{path}") for path in files[:6]]
    tries += [("list", str(scene.delivery / "sub")), ("search", ".")]
    name = "sub/r.md" if scene.mode == "host" else "r.md"
    return [*tries * 8, ("deliver", name)]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--tries", type=int, default=100_000)
    tries = parser.parse_args().tries
    modes: tuple[WorkspaceMode, ...] = ("host", "full")
    for mode in modes:
        with tempfile.TemporaryDirectory() as name:
            started = time.monotonic()
            outcome = race(Path(name).resolve(), mode, tries=tries)
            took = time.monotonic() - started
        allowed, refused = outcome.allowed.total(), outcome.refused.total()
        sys.stdout.write(
            f"{mode}: {outcome.tries} tries in {took:.0f} s, {allowed} allowed, {refused} refused, no escape\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
