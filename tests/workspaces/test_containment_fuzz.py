"""No use of a workspace gets outside, whatever the path, the tree and its links, and whatever another process
swaps meanwhile (SPEC F2). In both modes. `swap_race` runs the race as long as wanted."""

import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workspaces.escapes import MARK, SECRET, Escaped, Scene, Use
from workspaces.swap_race import race
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.settings import WorkspaceMode

every_mode = pytest.mark.parametrize("mode", ["host", "full"])
COMPOSED, DECOMPOSED = "é", unicodedata.normalize("NFD", "é")
NAMES = st.sampled_from(
    ["a", "b", "c", "a.txt", COMPOSED, DECOMPOSED, "x" * 255, ".hidden", "..a", "a b", "\\", "a.txt"]
)
"""Of what is in a tree."""
TARGETS = st.one_of(
    st.sampled_from(
        [
            "OUT", "OUT/a.txt", "OUT/new.txt", "/etc", "/etc/passwd", "/", "..", "../..", "../../..", ".", "a", "b", "c",
            "../a", "./b/../c", "a/b/c", "HOME", "HOME/a", "HOME/../task-s3cret", "HOME/a/../../../..", "DELIVERY", "UP/out",
            "/proc/self/root/etc", "/proc/self/cwd", "/proc/self/fd/0", "/proc/1/root", "/dev/fd/3", "/workspace", "/workspace/a",
            "/workspace/../etc", "/input", "/input/a.txt", "", "x" * 300, "/" + "a/" * 200, "//OUT", f"{COMPOSED}/..", DECOMPOSED,
        ]
    ),
    st.lists(st.sampled_from(["..", "a", "b", "c", ".", "out",  "a.txt"]), min_size=1, max_size=9).map("/".join),
)  # fmt: skip
"""Of links."""
ENTRIES = st.lists(
    st.tuples(
        st.lists(NAMES, min_size=1, max_size=3), st.one_of(st.just("file"), st.just("directory"), TARGETS)
    ),
    max_size=8,
)
PIECES = st.one_of(
    NAMES,
    st.sampled_from(["..", ".", "", "out", "ws", "agents", "shared", "task", "task-s3cret", "proc", "self", "root", "etc", "passwd", "~", "C:", "\0", "\n", "‥", "．．", "%2e%2e", "..\\..", "\ud800", "x" * 5_000]),
    st.text(max_size=4),
)  # fmt: skip
PATHS = st.tuples(
    st.sampled_from(["", "", "", "/", "//", "./", "../", "HOME/", "OUT/", "DELIVERY/", "ROOT/", "/workspace/", "/input/", "/proc/self/root/", "/proc/self/cwd/", "/dev/fd/"]),
    st.lists(PIECES, min_size=0, max_size=6).map("/".join),
    st.sampled_from(["", "", "/", "/.", "/.."]),
).map("".join)  # fmt: skip


def named(text: str, scene: Scene) -> str:
    up = "../" * (len(scene.home.parts) - len(scene.root.parts))
    places = {"OUT": scene.out, "HOME": scene.home, "DELIVERY": scene.delivery, "ROOT": scene.root, "UP/": up}
    for word, place in places.items():
        text = text.replace(word, str(place))
    return text


def plant(scene: Scene, entries: list[tuple[list[str], str]]) -> None:
    """What can be made of the entries: a name that is taken, or below a link or a file, is left out."""
    for base in (scene.home, scene.delivery):
        for parts, kind in entries:
            path = base.joinpath(*parts)
            try:
                if any(above.is_symlink() for above in (path, *path.parents) if above.is_relative_to(base)):
                    continue
                path.parent.mkdir(parents=True, exist_ok=True)
                if kind == "file":
                    path.write_text(f"{MARK}file")
                elif kind == "directory":
                    path.mkdir()
                else:
                    path.symlink_to(named(kind, scene))
            except OSError:
                continue


@every_mode
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
@given(entries=ENTRIES, paths=st.lists(PATHS, min_size=1, max_size=6))
def test_no_path_through_any_tree_leads_outside(
    mode: WorkspaceMode, entries: list[tuple[list[str], str]], paths: list[str]
) -> None:
    with tempfile.TemporaryDirectory() as name:
        scene = Scene(Path(name).resolve(), mode)
        plant(scene, entries)
        for path in paths:
            for use in scene.uses().values():
                scene.attempt(use, named(path, scene))
        for parts, _ in entries:
            for use in scene.uses().values():
                scene.attempt(use, "/".join(parts))
        scene.check()


@every_mode
def test_nothing_outside_is_reached_while_another_process_swaps(tmp_path: Path, mode: WorkspaceMode) -> None:
    outcome = race(tmp_path.resolve(), mode, seconds=4)
    contested = [what for what in outcome.allowed if what in outcome.refused]
    assert len(contested) > 10, "the swapping was not noticed"
    assert outcome.tries > 200


def careless(scene: Scene) -> dict[str, Use]:
    """Resolves, compares, and opens by name: the usual mistake."""
    home = scene.home

    def read(path: str) -> list[str]:
        found = home / path
        try:
            if not found.resolve().is_relative_to(home):
                raise ToolFailed("outside")
            return [found.read_text()]
        except OSError as error:
            raise ToolFailed("could not be read") from error

    return {"read": read}


def test_a_workspace_that_looks_first_and_opens_then_is_caught(tmp_path: Path) -> None:
    """So the race above can fail."""
    with pytest.raises(Escaped, match=SECRET):
        race(tmp_path.resolve(), "host", seconds=20, used=careless)
