"""What any `Workspaces` must do (SPEC D6, E3, F1, F2), on a real directory.

    @pytest.mark.parametrize("check", WORKSPACE_CHECKS, ids=check_name)
    def test_conforms(check: WorkspaceCheck, tmp_path: Path) -> None:
        check(my_factory, tmp_path)

The factory opens workspaces in host mode with everything below the directory it gets; called again
with the same one it stands for a restart. Each check fails with an `AssertionError`.
"""

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.workspaces import Workspace, Workspaces

WorkspacesFactory = Callable[[Path], Workspaces]
WorkspaceCheck = Callable[[WorkspacesFactory, Path], None]

SECRET = "the-secret-content"
HANG_S = 5.0
"""A read that has not come back after this many seconds hangs."""


def check_directories_are_apart(make: WorkspacesFactory, root: Path) -> None:
    """Each run of a task has its own private directory; a task's deliveries are in one place. They list
    as empty before they exist, and exist once they are prepared."""
    workspaces = make(root)
    coder = workspaces.open("coder", "aaaaaa", "run1")
    other = workspaces.open("coder", "bbbbbb", "run2")
    places = [coder.private_dir, coder.delivery_dir, other.private_dir, other.delivery_dir]
    assert len(set(places)) == 4, f"not four directories: {places}"
    for path in (".", coder.private_dir, coder.delivery_dir):
        assert coder.list_directory(path) == [], f"{path} is not empty at first"
    coder.prepare()
    other.prepare()
    for place in places:
        assert Path(place).is_absolute(), f"{place} is not absolute"
        assert Path(place).is_dir(), f"{place} does not exist"
        assert Path(place).resolve().is_relative_to(root.resolve()), f"{place} is outside {root}"


def check_files_come_back(make: WorkspacesFactory, root: Path) -> None:
    """What is written is read again, by relative and absolute path, in slices, and is listed."""
    workspace = _open(make, root)
    path = workspace.write("notes/a.txt", "häagen".encode())
    assert path == str(Path(workspace.private_dir) / "notes" / "a.txt"), f"written to {path}"
    for name in ("notes/a.txt", path):
        whole = workspace.read(name)
        got = (whole.text, whole.size, whole.next_offset, whole.binary)
        assert got == ("häagen", 7, None, False), f"{name}: {whole}"
    assert workspace.read(path, 1, 2).text == "ä"
    assert workspace.read(path, 1, 2).next_offset == 3
    workspace.write("notes/a.txt", b"new")
    assert workspace.read(path).text == "new", "the second write did not replace the file"
    listed = [(item.name, item.type, item.size) for item in workspace.list_directory("notes")]
    assert listed == [("a.txt", "file", 3)], f"{listed}"
    workspace.write("more.txt", b"more")
    assert len(workspace.list_directory(".", 1)) == 1, "a limit was passed over"
    types = {item.name: item.type for item in workspace.list_directory(workspace.private_dir)}
    assert types.get("notes") == "directory", f"{types}"


def check_files_are_edited(make: WorkspacesFactory, root: Path) -> None:
    """A private file is replaced by what is made of it; one that cannot be stays as it is."""
    workspace = _open(make, root)
    path = workspace.write("a.txt", b"one")
    Path(path).chmod(0o750)
    assert workspace.edit("a.txt", lambda content: content + b" two", 100) == path
    assert workspace.read("a.txt").text == "one two"
    assert Path(path).stat().st_mode & 0o777 == 0o750, "an edit changed the mode"
    delivered = workspace.deliver(f"{workspace.delivery_dir}/r.md", b"result")
    for place, limit in (("a.txt", 3), ("missing.txt", 100), (delivered.path, 100), (".", 100)):
        _expect_refusal(
            f"edit({place!r})", lambda p=place, most=limit: workspace.edit(p, lambda _: b"x", most)
        )
    assert workspace.read("a.txt").text == "one two"
    assert workspace.verify(delivered.path) == delivered


def check_directories_are_opened(make: WorkspacesFactory, root: Path) -> None:
    """By descriptor: a directory to look into, a file to read; also before anything was written."""
    workspace = make(root).open("coder", "aaaaaa", "run1")
    with workspace.opened(".") as opened:
        assert opened.is_directory, "the private directory is opened as a file"
        assert os.listdir(opened.descriptor) == []  # noqa: PTH208 - of a descriptor
    workspace.write("a/b.txt", b"here")
    with workspace.opened("a") as opened:
        assert os.listdir(opened.descriptor) == ["b.txt"]  # noqa: PTH208 - of a descriptor
    with workspace.opened("a/b.txt") as opened:
        found = (os.pread(opened.descriptor, 100, 0), opened.size, opened.is_directory)
        assert found == (b"here", 4, False), f"{found}"


def check_any_bytes_are_read(make: WorkspacesFactory, root: Path) -> None:
    """Bytes that are no text never raise; a file of them is called binary (X03)."""
    workspace = _open(make, root)
    workspace.write("image", b"\x89PNG\x00\xff\xfe\x00" * 10)
    assert workspace.read("image").binary, "a file with NUL bytes is not called binary"
    workspace.write("latin1.txt", b"caf\xe9")
    assert workspace.read("latin1.txt").text.startswith("caf")


def check_nothing_outside_is_reached(make: WorkspacesFactory, root: Path) -> None:
    """`..`, absolute paths, siblings with the same beginning, odd paths (F01, F06): for every method."""
    workspace = _open(make, root)
    outside = _secret(root / "outside")
    beside = _secret(Path(f"{workspace.private_dir}x"))
    other = make(root).open("writer", "bbbbbb", "run2")
    others = other.write("own.txt", SECRET.encode())
    up = os.path.relpath(outside, workspace.private_dir)
    for path in (up, f"./x/../{up}", str(outside), str(beside), others, "/etc/passwd", "a\0b", "..", "/"):
        _assert_refused(workspace, path)
    for odd in (
        "",
        "x" * 5_000,
        "~/file",
        "\\\\server\\share\\f",
        "C:\\f",
        "..\\..\\f",
        "file:///etc/passwd",
    ):
        _assert_contained(workspace, odd)
    assert Path(outside).read_text() == SECRET
    assert Path(others).read_text() == SECRET


def check_links_do_not_lead_out(make: WorkspacesFactory, root: Path) -> None:
    """A link to a file, to a directory, to nothing yet, and a chain of them (F02)."""
    workspace = _open(make, root)
    outside = _secret(root / "outside")
    missing = root / "outside" / "missing.txt"
    links = {
        "file": outside,
        "directory": outside.parent,
        "dangling": missing,
        "chain": Path(workspace.private_dir) / "file",
    }
    for name, target in links.items():
        for home in (workspace.private_dir, workspace.delivery_dir):
            (Path(home) / name).symlink_to(target)
    for home in (workspace.private_dir, workspace.delivery_dir):
        for path in ("file", f"directory/{outside.name}", "directory/new.txt", "dangling", "chain"):
            _assert_unread(workspace, f"{home}/{path}")
            _assert_contained(workspace, f"{home}/{path}")
    assert outside.read_text() == SECRET, "a file outside was changed through a link"
    assert not missing.exists(), "a file outside was made through a dangling link"
    assert not (outside.parent / "new.txt").exists(), "a file outside was made through a directory link"


def check_special_files_do_not_hang(make: WorkspacesFactory, root: Path) -> None:
    """Reading a FIFO is refused at once; it is listed as what it is (F10)."""
    workspace = _open(make, root)
    os.mkfifo(Path(workspace.private_dir) / "pipe")
    refused: list[ToolFailed] = []

    def read() -> None:
        try:
            workspace.read("pipe")
        except ToolFailed as error:
            refused.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(HANG_S)
    assert not reader.is_alive(), f"reading a FIFO hung for {HANG_S} s"
    assert refused, "reading a FIFO was not refused with ToolFailed"
    types = {item.name: item.type for item in workspace.list_directory(".")}
    assert types == {"pipe": "fifo"}, f"{types}"


def check_grants_open_one_file(make: WorkspacesFactory, root: Path) -> None:
    """A granted artifact is readable, not writable; what lies beside it stays closed (E3)."""
    workspaces = make(root)
    author = workspaces.open("coder", "aaaaaa", "run1")
    granted = author.deliver(f"{author.delivery_dir}/granted.txt", b"for you")
    hidden = author.deliver(f"{author.delivery_dir}/hidden.txt", SECRET.encode())
    reader = workspaces.open("writer", "bbbbbb", "run2")
    _assert_unread(reader, granted.path)
    reader.grant((granted,))
    assert reader.read(granted.path).text == "for you"
    _assert_unread(reader, hidden.path)
    for name in ("write", "deliver"):
        _expect_refusal(f"{name} on a granted path", dict(_uses(reader, granted.path))[name])
    assert Path(granted.path).read_bytes() == b"for you"


def check_deliveries_are_pointers(make: WorkspacesFactory, root: Path) -> None:
    """A delivery answers path, hash, size, author; it verifies until its file changes (D6, R02)."""
    workspaces = make(root)
    workspace = workspaces.open("coder", "aaaaaa", "run1")
    content = bytes(range(256))
    pointer = workspace.deliver(f"{workspace.delivery_dir}/data.bin", content)
    assert Path(pointer.path).read_bytes() == content
    assert Path(pointer.path).is_relative_to(workspace.delivery_dir), f"{pointer.path}"
    got = (pointer.sha256, pointer.size, pointer.agent, pointer.run_id, pointer.version)
    assert got == (hashlib.sha256(content).hexdigest(), 256, "coder", "run1", 1), f"{pointer}"
    assert workspace.verify(pointer.path) == pointer, f"{workspace.verify(pointer.path)}"
    assert workspaces.find(pointer.path) == pointer, f"{workspaces.find(pointer.path)}"
    Path(pointer.path).chmod(0o600)
    Path(pointer.path).write_bytes(content[::-1])
    assert workspace.verify(pointer.path) is None, "a changed file verifies"
    assert workspaces.find(pointer.path) is None, "a changed file is found"


def check_only_deliveries_verify(make: WorkspacesFactory, root: Path) -> None:
    """Not a private file, a path outside, a directory, or a file that was never delivered (R02)."""
    workspace = _open(make, root)
    private = workspace.write("draft.txt", b"draft")
    planted = Path(workspace.delivery_dir) / "planted.txt"
    planted.write_bytes(b"not by deliver")
    outside = str(_secret(root / "outside"))
    for path in (private, str(planted), outside, workspace.delivery_dir, "missing.txt", "", "a\0b"):
        assert workspace.verify(path) is None, f"{path!r} verifies"
        assert make(root).find(path) is None, f"{path!r} is found"
    for path in (private, outside, f"{workspace.delivery_dir}/../up.txt"):
        _expect_refusal(f"deliver({path!r})", dict(_uses(workspace, path))["deliver"])


def check_nothing_is_overwritten(make: WorkspacesFactory, root: Path) -> None:
    """A second delivery under a name is version 2; the first stays as it was (D6, F08)."""
    workspaces = make(root)
    first_run = workspaces.open("coder", "aaaaaa", "run1")
    second_run = workspaces.open("writer", "aaaaaa", "run2")
    path = f"{first_run.delivery_dir}/report.md"
    first = first_run.deliver(path, b"first")
    second = first_run.deliver(path, b"second")
    third = second_run.deliver(path, b"third")
    assert [p.version for p in (first, second, third)] == [1, 2, 3]
    contents = [Path(pointer.path).read_bytes() for pointer in (first, second, third)]
    assert contents == [b"first", b"second", b"third"], f"{contents}"
    assert first_run.verify(first.path) == first, "the first version is no longer verified"
    assert first_run.delivered() == [first, second], f"{first_run.delivered()}"
    assert second_run.delivered() == [third], f"{second_run.delivered()}"


def check_parallel_deliveries_all_stay(make: WorkspacesFactory, root: Path) -> None:
    """Several runs deliver one name at once: as many versions, none lost (F08)."""
    workspaces = make(root)
    paths: list[str] = []

    def deliver(number: int) -> None:
        workspace = workspaces.open("coder", "aaaaaa", f"run{number}")
        pointer = workspace.deliver(f"{workspace.delivery_dir}/same.txt", str(number).encode())
        paths.append(pointer.path)

    threads = [threading.Thread(target=deliver, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    contents = sorted(Path(path).read_text() for path in paths)
    assert contents == [str(number) for number in range(8)], f"{contents}"


def check_a_restart_changes_nothing(make: WorkspacesFactory, root: Path) -> None:
    """Opened again: the same directories, files and deliveries; a version goes on counting (C6)."""
    before = make(root).open("coder", "aaaaaa", "run1")
    before.write("draft.txt", b"draft")
    first = before.deliver(f"{before.delivery_dir}/a.txt", b"a")
    after = make(root).open("coder", "aaaaaa", "run1")
    assert (after.private_dir, after.delivery_dir) == (before.private_dir, before.delivery_dir)
    assert after.read("draft.txt").text == "draft"
    assert after.delivered() == [first], f"{after.delivered()}"
    assert make(root).find(first.path) == first
    assert after.deliver(f"{after.delivery_dir}/a.txt", b"b").version == 2


def check_names_are_no_paths(make: WorkspacesFactory, root: Path) -> None:
    """Agent, task and spill names of any kind stay below the root and apart (F04)."""
    inside = root / "inside"
    workspaces = make(inside)
    homes: list[str] = []
    for name in ("../../evil", "/abs", "a/b", "..", "数据 分析", "x" * 300, "con", "A", "."):
        try:
            workspace = workspaces.open(name, name, f"run-{len(homes)}")
        except (UsageError, ToolFailed):
            continue
        homes += [workspace.private_dir, workspace.delivery_dir]
        spilled = workspace.spill(name, "long output")
        assert Path(spilled).resolve().is_relative_to(Path(workspace.private_dir).resolve()), f"{spilled}"
        assert workspace.read(spilled).text == "long output"
    assert len(set(homes)) == len(homes), f"two names share a directory: {homes}"
    assert [path.name for path in root.iterdir()] == ["inside"], "a name led out of the root"


WORKSPACE_CHECKS: tuple[WorkspaceCheck, ...] = (
    check_directories_are_apart,
    check_files_come_back,
    check_files_are_edited,
    check_directories_are_opened,
    check_any_bytes_are_read,
    check_nothing_outside_is_reached,
    check_links_do_not_lead_out,
    check_special_files_do_not_hang,
    check_grants_open_one_file,
    check_deliveries_are_pointers,
    check_only_deliveries_verify,
    check_nothing_is_overwritten,
    check_parallel_deliveries_all_stay,
    check_a_restart_changes_nothing,
    check_names_are_no_paths,
)


def check_name(check: Callable[..., object]) -> str:
    """For the ids of a parametrized test."""
    return check.__name__.removeprefix("check_")


def _open(make: WorkspacesFactory, root: Path) -> Workspace:
    workspace = make(root).open("coder", "aaaaaa", "run1")
    workspace.prepare()
    return workspace


def _secret(directory: Path) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / "secret.txt"
    path.write_text(SECRET)
    return path


def _uses(workspace: Workspace, path: str) -> Iterator[tuple[str, Callable[[], object]]]:
    yield "read", lambda: workspace.read(path)
    yield "list_directory", lambda: workspace.list_directory(path)
    yield "write", lambda: workspace.write(path, b"planted")
    yield "edit", lambda: workspace.edit(path, lambda _: b"planted", 10_000)
    yield "opened", lambda: _opened(workspace, path)
    yield "deliver", lambda: workspace.deliver(path, b"planted")


def _opened(workspace: Workspace, path: str) -> object:
    with workspace.opened(path) as opened:
        return opened


def _assert_refused(workspace: Workspace, path: str) -> None:
    """Every method answers `ToolFailed`, without showing contents."""
    for name, use in _uses(workspace, path):
        _expect_refusal(f"{name}({path!r})", use)


def _assert_unread(workspace: Workspace, path: str) -> None:
    _expect_refusal(f"read({path!r})", lambda: workspace.read(path))


def _expect_refusal(name: str, use: Callable[[], object]) -> None:
    try:
        answer = use()
    except ToolFailed as error:
        refusal = str(error)
    else:
        raise AssertionError(f"{name} answered {answer!r}")
    assert SECRET not in refusal, f"the refusal of {name} shows contents: {refusal}"


def _assert_contained(workspace: Workspace, path: str) -> None:
    """Refused with `ToolFailed`, or written to a place that is really inside."""
    homes = [Path(home).resolve() for home in (workspace.private_dir, workspace.delivery_dir)]
    for write in (workspace.write, workspace.deliver):
        try:
            answer = write(path, b"planted")
        except ToolFailed:
            continue
        written = Path(answer if isinstance(answer, str) else answer.path).resolve()
        assert any(written.is_relative_to(home) for home in homes), f"{path!r} was written to {written}"
