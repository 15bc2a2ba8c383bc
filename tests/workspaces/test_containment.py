"""Nothing outside is ever reached: by any path, through any link, in any race (SPEC F2)."""

import ctypes
import os
import socket
import tempfile
import threading
import time
import unicodedata
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workspaces.places import SECRET, snapshot, workspace, workspaces
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.workspace import LocalWorkspace

OWN = ("own", "planted")


@dataclass(frozen=True)
class Surroundings:
    """A workspace with links and odd files in it, and secrets all around."""

    root: Path
    own: LocalWorkspace

    def outside(self) -> dict[str, tuple[str, bytes]]:
        own = (self.own.private_dir, self.own.delivery_dir, str(self.root / "ws" / ".deliveries"))
        return {path: entry for path, entry in snapshot(self.root).items() if not path.startswith(own)}


@pytest.fixture(scope="module")
def surroundings() -> Iterator[Surroundings]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name).resolve()
        own = workspace(root / "ws")
        workspace(root / "ws", "coder", "task-secret", "run-2").write("s.txt", SECRET.encode())
        workspace(root / "ws", "writer", "task", "run-3").write("s.txt", SECRET.encode())
        workspace(root / "ws", "writer", "other", "run-4").deliver("s.txt", SECRET.encode())
        (root / "out").mkdir()
        (root / "out" / "s.txt").write_text(SECRET)
        (root / "out" / SECRET).mkdir()
        home = Path(own.private_dir)
        (home / "sub").mkdir()
        (home / "sub" / "a.txt").write_text("own")
        (home / "a.txt").write_text("own")
        (home / unicodedata.normalize("NFD", "é.txt")).write_text("own")
        for here in (home, Path(own.delivery_dir)):
            (here / "out").symlink_to(root / "out")
            (here / "up").symlink_to("..")
            (here / "file").symlink_to(root / "out" / "s.txt")
            (here / "new").symlink_to(root / "out" / "new.txt")
            (here / "loop").symlink_to("loop")
            (here / "chain").symlink_to("up/../sub/../out/s.txt")
        (home / "in").symlink_to("sub/a.txt")
        (home / "indir").symlink_to(home / "sub")
        yield Surroundings(root, own)


def parts(root: str) -> st.SearchStrategy[str]:
    known = [
        "..",
        ".",
        "",
        "sub",
        "a.txt",
        "s.txt",
        "out",
        "up",
        "file",
        "new",
        "loop",
        "chain",
        "in",
        "indir",
    ]
    known += ["é.txt", unicodedata.normalize("NFD", "é.txt"), "ws", "agents", "shared", "coder", "writer"]
    known += [
        "task",
        "task-secret",
        "other",
        ".deliveries",
        "~",
        "..\\..",
        "C:",
        "NUL",
        "．．",
        "..;",
        "%2e%2e",
    ]
    known += [root.strip("/"), "\u2025", "‥", "..\u200b"]
    return st.one_of(st.sampled_from(known), st.text(max_size=5))


@st.composite
def paths(draw: st.DrawFn) -> Callable[[Surroundings], str]:
    pieces = draw(st.lists(parts("ROOT"), max_size=8))
    start = draw(st.sampled_from(["", "/", "//", "ROOT/", "PRIVATE/", "DELIVERY/", "./", "../"]))
    text = start + "/".join(pieces)

    def path(around: Surroundings) -> str:
        named = text.replace("PRIVATE", around.own.private_dir).replace("DELIVERY", around.own.delivery_dir)
        return named.replace("ROOT", str(around.root))

    return path


@contextmanager
def refused_silently() -> Generator[None]:
    """What is inside may be refused, with a text that shows no contents."""
    told = ""
    try:
        yield
    except ToolFailed as refused:
        told = str(refused)
    assert SECRET not in told


@settings(max_examples=600, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=paths())
def test_no_path_reads_or_lists_anything_outside(
    surroundings: Surroundings, path: Callable[[Surroundings], str]
) -> None:
    written = path(surroundings)
    with refused_silently():
        assert surroundings.own.read(written).text in OWN
    with refused_silently():
        names = {item.name for item in surroundings.own.list_directory(written)}
        assert names.isdisjoint({"s.txt", SECRET, "ws", "agents", "passwd"})
    pointer = surroundings.own.verify(written)
    assert pointer is None or pointer.path.startswith(surroundings.own.delivery_dir)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(path=paths())
def test_no_path_writes_or_delivers_anything_outside(
    surroundings: Surroundings, path: Callable[[Surroundings], str]
) -> None:
    before = surroundings.outside()
    for change in (surroundings.own.write, surroundings.own.deliver):
        with refused_silently():
            change(path(surroundings), b"planted")
    assert surroundings.outside() == before


@pytest.mark.parametrize(
    "path", ["./a.txt", "sub/../a.txt", "missing/../a.txt", "in", "indir/a.txt", "PRIVATE/a.txt"]
)
def test_own_files_are_read_by_every_way_that_stays_inside(surroundings: Surroundings, path: str) -> None:
    """F01, F02: links too."""
    assert surroundings.own.read(path.replace("PRIVATE", surroundings.own.private_dir)).text in OWN


def test_a_sibling_with_the_same_beginning_is_refused(tmp_path: Path) -> None:
    """F01."""
    own = workspace(tmp_path, "coder", "t", "run-1")
    secret = workspace(tmp_path, "coder", "t-secret", "run-2").write("s.txt", SECRET.encode())
    for path in ("../t-secret/s.txt", secret, "sub/../../t-secret/s.txt", f"{own.private_dir}-secret/s.txt"):
        with pytest.raises(ToolFailed, match="outside") as refused:
            own.read(path)
        assert SECRET not in str(refused.value)
    with pytest.raises(ToolFailed, match="outside"):
        own.list_directory("..")


def test_links_that_lead_out_are_refused_by_every_method(tmp_path: Path) -> None:
    """F02."""
    own = workspace(tmp_path / "ws")
    home, target = Path(own.private_dir), tmp_path / "out"
    (home / "link").symlink_to("/etc/passwd")
    (home / "dirlink").symlink_to("/etc")
    (home / "newfile").symlink_to(target)
    uses = (
        lambda: own.read("link"),
        lambda: own.read("dirlink/hostname"),
        lambda: own.list_directory("dirlink"),
        lambda: own.write("newfile", b"x"),
        lambda: own.write("dirlink/xclaw", b"x"),
        lambda: own.read("newfile"),
    )
    for use in uses:
        with pytest.raises(ToolFailed, match="outside"):
            use()
    assert not target.exists()
    (Path(own.delivery_dir) / "link").symlink_to("/etc/passwd")
    with pytest.raises(ToolFailed):
        own.deliver("link", b"x")


def test_a_write_through_a_link_inside_changes_its_target(tmp_path: Path) -> None:
    """F02."""
    own = workspace(tmp_path)
    home = Path(own.private_dir)
    own.write("real.txt", b"old")
    (home / "link").symlink_to("real.txt")
    assert own.write("link", b"new") == str(home / "real.txt")
    assert (home / "real.txt").read_bytes() == b"new"
    assert (home / "link").is_symlink()


def test_a_link_into_the_delivery_directory_is_read_and_never_written(tmp_path: Path) -> None:
    own = workspace(tmp_path)
    pointer = own.deliver("report.md", b"done")
    (Path(own.private_dir) / "link").symlink_to(pointer.path)
    (Path(own.private_dir) / "up").symlink_to("../../../shared/task/report.md")
    assert own.read("link").text == own.read("up").text == "done"
    for name in ("link", "up"):
        with pytest.raises(ToolFailed):
            own.write(name, b"changed")
    assert own.verify(pointer.path) == pointer


@contextmanager
def exchanging(one: Path, other: Path) -> Generator[None]:
    """What is at two paths changes places all the time, each time in one step."""
    stop = threading.Event()
    rename = ctypes.CDLL(None).renameat2
    here, exchange = -100, 2

    def swap() -> None:
        while not stop.is_set():
            assert rename(here, bytes(one), here, bytes(other), exchange) == 0

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def seen_for_a_second(*uses: Callable[[], str]) -> set[str]:
    seen: set[str] = set()
    deadline = time.monotonic() + 1
    while time.monotonic() < deadline:
        for use in uses:
            try:
                seen.add(use())
            except ToolFailed:
                seen.add("refused")
    return seen


@pytest.mark.parametrize("depth", ["d/a.txt", "x/d/a.txt"])
def test_swapping_a_directory_for_a_link_never_leaks(tmp_path: Path, depth: str) -> None:
    """F2: races between check and use are closed, for reading, listing and writing."""
    own = workspace(tmp_path / "ws")
    outside = tmp_path / "out"
    outside.mkdir()
    (outside / "a.txt").write_text(SECRET)
    directory = Path(own.write(depth, b"own")).parent
    link = directory.with_name("link")
    link.symlink_to(outside)
    with exchanging(directory, link):
        seen = seen_for_a_second(
            lambda: own.read(depth).text,
            lambda: ",".join(item.name for item in own.list_directory(str(Path(depth).parent))),
            lambda: own.write(f"{depth}.new", b"planted") and "written",
        )
    assert SECRET not in seen
    assert {"own", "refused", "written"} <= seen
    assert [path.name for path in outside.iterdir()] == ["a.txt"]


def test_swapping_a_file_for_a_link_never_leaks(tmp_path: Path) -> None:
    """F2."""
    own = workspace(tmp_path / "ws")
    outside = tmp_path / "out"
    outside.write_text(SECRET)
    file = Path(own.write("a.txt", b"own"))
    link = file.with_name("link")
    link.symlink_to(outside)
    with exchanging(file, link):
        assert seen_for_a_second(lambda: own.read("a.txt").text) == {"own", "refused"}
    assert outside.read_text() == SECRET


def test_a_workspace_whose_own_directory_became_a_link_is_refused(tmp_path: Path) -> None:
    """F2: also the directories above the private one are never followed."""
    own = workspace(tmp_path / "ws")
    (tmp_path / "out" / "task").mkdir(parents=True)
    (tmp_path / "out" / "task" / "a.txt").write_text(SECRET)
    agent = Path(own.private_dir).parent
    agent.rename(tmp_path / "moved")
    agent.symlink_to(tmp_path / "out")
    with pytest.raises(ToolFailed):
        own.read("a.txt")
    with pytest.raises(ToolFailed):
        own.write("b.txt", b"x")
    assert not (tmp_path / "out" / "task" / "b.txt").exists()


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    """F10."""
    own = workspace(tmp_path)
    home = Path(own.private_dir)
    os.mkfifo(home / "p")
    (home / "zero").symlink_to("/dev/zero")
    (home / "plink").symlink_to("p")
    started = time.monotonic()
    with socket.socket(socket.AF_UNIX) as unix:
        here = Path.cwd()
        os.chdir(home)  # the path of a socket is short
        try:
            unix.bind("s")
        finally:
            os.chdir(here)
        for name, word in (("p", "fifo"), ("s", "socket"), ("plink", "fifo"), (".", "directory")):
            with pytest.raises(ToolFailed, match=f"not a regular file but a {word}"):
                own.read(name)
        for name in ("/dev/zero", "zero"):
            with pytest.raises(ToolFailed, match="outside"):
                own.read(name)
        for name in ("p", "s", "plink"):
            with pytest.raises(ToolFailed, match="not a regular file"):
                own.write(name, b"x")
        types = {item.name: item.type for item in own.list_directory(".")}
    assert types == {"p": "fifo", "s": "socket", "zero": "link", "plink": "link"}
    assert time.monotonic() - started < 1


def test_a_name_is_found_in_either_normal_form(tmp_path: Path) -> None:
    """F07."""
    own = workspace(tmp_path)
    composed = "résumé.md"
    decomposed = unicodedata.normalize("NFD", composed)
    assert (len(composed), len(decomposed)) == (9, 11)
    (Path(own.private_dir) / decomposed).write_text("on disk")
    assert own.read(composed).text == "on disk"
    own.write(composed, b"changed")
    assert [item.name for item in own.list_directory(".")] == [decomposed]


def test_a_near_name_is_suggested(tmp_path: Path) -> None:
    own = workspace(tmp_path)
    own.write("Report.md", b"x")
    with pytest.raises(ToolFailed, match=r"does not exist\. Did you mean 'Report.md'"):
        own.read("report.md")


@pytest.mark.parametrize("path", ["a\nb", "a\u202eb", "a\u200bb", ".xclaw-tmp-1", "x/\x1b[1m"])
def test_names_that_could_pass_for_something_else_are_not_given(tmp_path: Path, path: str) -> None:
    own = workspace(tmp_path)
    for change in (own.write, own.deliver):
        with pytest.raises(ToolFailed):
            change(path, b"x")
    assert own.list_directory(".") == []


def test_windows_rules_hold_for_every_method(tmp_path: Path) -> None:
    """F06."""
    own = workspaces(tmp_path, path_rules="windows").open("coder", "task", "run-1")
    for path in ("NUL", "a.txt:stream", "..\\..\\x", "C:\\x", "sub\\..\\..\\..\\x"):
        for read in (own.read, own.list_directory):
            with pytest.raises(ToolFailed):
                read(path)
        for change in (own.write, own.deliver):
            with pytest.raises(ToolFailed):
                change(path, b"x")
        assert own.verify(path) is None
    assert own.write("sub\\a.txt", b"x") == f"{own.private_dir}/sub/a.txt"


def test_a_path_through_a_file_is_a_clear_error(tmp_path: Path) -> None:
    own = workspace(tmp_path)
    own.write("a.txt", b"x")
    for use in (
        lambda: own.read("a.txt/b"),
        lambda: own.write("a.txt/b", b"x"),
        lambda: own.list_directory("a.txt"),
    ):
        with pytest.raises(ToolFailed, match=r"file where a directory is needed|does not exist"):
            use()
