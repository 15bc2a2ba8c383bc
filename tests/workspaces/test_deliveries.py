"""Delivering, versions and verification (SPEC D6, E1)."""

import os
import threading
import unicodedata
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from workspaces.places import workspace, workspaces
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.workspace import LocalWorkspace


def index_of(root: Path) -> Path:
    [index] = (root / ".deliveries").iterdir()
    return index


@pytest.mark.parametrize("tasks", [("task", "task", "task"), ("task-0", "task-1", "task-2")])
def test_parallel_deliveries_of_one_name_are_all_kept(tmp_path: Path, tasks: tuple[str, ...]) -> None:
    """F08: by workers of one task and of a task each, and once more afterwards."""
    runs = [workspace(tmp_path, f"w{n}", task, f"run-{n}") for n, task in enumerate(tasks)]
    barrier = threading.Barrier(len(runs))
    pointers: dict[int, Pointer] = {}

    def deliver(number: int, run: LocalWorkspace) -> None:
        barrier.wait()
        pointers[number] = run.deliver("report.md", f"by {number}".encode())

    threads = [threading.Thread(target=deliver, args=item) for item in enumerate(runs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    again = runs[0].deliver("report.md", b"again")
    for number, run in enumerate(runs):
        assert Path(pointers[number].path).read_text() == f"by {number}"
        assert run.verify(pointers[number].path) == pointers[number]
    assert again.version == (4 if len(set(tasks)) == 1 else 2)
    assert len({again.path, *(pointer.path for pointer in pointers.values())}) == 4


def test_the_same_content_again_is_the_same_pointer(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    first = run.deliver("a.txt", b"one")
    assert run.deliver("a.txt", b"one") == first
    second = run.deliver("a.txt", b"two")
    third = run.deliver("a.txt", b"one")
    assert [pointer.version for pointer in (first, second, third)] == [1, 2, 3]
    assert run.delivered() == [first, second, third]


def test_delivering_a_later_versions_path_again_makes_the_next_version(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    run.deliver("sub/a.txt", b"one")
    second = run.deliver("sub/a.txt", b"two")
    third = run.deliver(second.path, b"three")
    assert [Path(p.path).name for p in (second, third)] == ["a.v2.txt", "a.v3.txt"]
    assert (third.version, Path(second.path).read_bytes()) == (3, b"two")
    assert run.deliver("b.v2.txt", b"its own name").version == 1


def test_the_same_content_of_another_run_is_its_own_artifact(tmp_path: Path) -> None:
    first = workspace(tmp_path, "coder", "task", "run-1").deliver("a.txt", b"x")
    second = workspace(tmp_path, "writer", "task", "run-2").deliver("a.txt", b"x")
    assert (second.agent, second.run_id, second.version) == ("writer", "run-2", 2)
    assert first.path != second.path


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("résumé.md", unicodedata.normalize("NFD", "résumé.md")),
        ("Report.md", "report.md"),
        ("STRASSE.md", "straße.md"),
        ("sub/A.md", "sub/a.md"),
    ],
)
def test_names_that_some_file_system_takes_for_one_stay_apart(tmp_path: Path, one: str, other: str) -> None:
    """F07."""
    run = workspace(tmp_path)
    first, second = run.deliver(one, b"first"), run.deliver(other, b"second")
    names = {unicodedata.normalize("NFC", pointer.path).casefold() for pointer in (first, second)}
    assert len(names) == 2
    assert (Path(first.path).read_bytes(), Path(second.path).read_bytes()) == (b"first", b"second")
    for pointer in (first, second):
        assert run.verify(pointer.path) == pointer
        assert run.verify(unicodedata.normalize("NFD", pointer.path)) == pointer


def test_a_file_that_was_put_there_otherwise_is_neither_overwritten_nor_an_artifact(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    planted = Path(run.delivery_dir) / "report.md"
    planted.write_bytes(b"planted")
    pointer = run.deliver("report.md", b"mine")
    assert planted.read_bytes() == b"planted"
    assert pointer.path == f"{run.delivery_dir}/report.v2.md"
    assert run.verify(str(planted)) is None


def test_what_cannot_be_an_artifact_does_not_verify(tmp_path: Path) -> None:
    """R02."""
    run = workspace(tmp_path / "ws")
    pointer = run.deliver("report.md", b"x")
    private = run.write("report.md", b"x")
    delivery = Path(run.delivery_dir)
    (delivery / "directory").mkdir()
    (delivery / "empty.md").touch()
    (delivery / "link.md").symlink_to(pointer.path)
    (delivery / "passwd").symlink_to("/etc/passwd")
    os.link(private, delivery / "hard.md")
    never = [
        "missing.md",
        "directory",
        "empty.md",
        "link.md",
        "passwd",
        "hard.md",
        "",
        ".",
        "..",
        "a\0",
        "../x",
    ]
    for name in never:
        for path in (name, f"{run.delivery_dir}/{name}"):
            assert run.verify(path) is None
            assert workspaces(tmp_path / "ws").find(path) is None
    for path in (private, "/etc/passwd", "/", f"{run.delivery_dir}x/report.md"):
        assert run.verify(path) is None


def test_a_delivered_file_replaced_by_another_thing_no_longer_verifies(tmp_path: Path) -> None:
    """R02: bytes changed, emptied, removed, a link to the very same bytes, a directory, a pipe."""
    run = workspace(tmp_path)

    def link_to_the_same(path: Path) -> None:
        path.rename(path.with_name("moved"))
        path.symlink_to(path.with_name("moved"))

    def change(path: Path) -> None:
        path.chmod(0o600)
        path.write_bytes(b"y")

    def empty(path: Path) -> None:
        path.chmod(0o600)
        path.write_bytes(b"")

    def pipe(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)

    def directory(path: Path) -> None:
        path.unlink()
        path.mkdir()

    for number, damage in enumerate((change, empty, Path.unlink, link_to_the_same, pipe, directory)):
        pointer = run.deliver(f"{number}.md", b"x")
        assert run.verify(pointer.path) == pointer
        damage(Path(pointer.path))
        assert run.verify(pointer.path) is None
        assert workspaces(tmp_path).find(pointer.path) is None


def test_a_bare_name_means_the_newest_version_of_the_run(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    run.deliver("report.md", b"draft")
    final = run.deliver("report.md", b"final")
    assert run.verify("report.md") == final
    assert run.read("report.md").text == "final"


def test_a_delivered_file_shares_nothing_with_a_private_one(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    private = run.write("a.txt", b"x")
    pointer = run.deliver("a.txt", b"x")
    assert Path(private).stat().st_ino != Path(pointer.path).stat().st_ino
    assert Path(pointer.path).stat().st_nlink == 1
    assert Path(pointer.path).stat().st_mode & 0o222 == 0


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"\n\n\n",
        b'{"path": "a.txt", "na',
        b"\xff\xfe\0\0",
        b"[]\nnull\n7\n",
        b'{"path": "../../up", "name": "a.txt", "sha256": "", "size": 1, "agent": "", "run_id": "run-1", "version": 1}\n',
        b'{"path": "a\\u0000b", "name": "a.txt", "sha256": "", "size": 1, "agent": "", "run_id": "run-1", "version": 1}\n',
        b"x" * 1_000_000,
    ],
)
def test_a_damaged_record_loses_nothing_else(tmp_path: Path, damage: bytes) -> None:
    """D06: readable entries are kept, the damage stays where it is, and deliveries go on."""
    run = workspace(tmp_path)
    first = run.deliver("first.txt", b"1")
    index = index_of(tmp_path)
    with index.open("ab") as file:
        file.write(damage)
    second = workspace(tmp_path).deliver("a.txt", b"2")
    assert workspace(tmp_path).delivered() == [first, second]
    assert damage in index.read_bytes()
    for pointer in (first, second):
        assert workspace(tmp_path).verify(pointer.path) == pointer


def test_an_emptied_record_takes_the_proof_but_no_file(tmp_path: Path) -> None:
    """D06: a 0-byte index."""
    run = workspace(tmp_path)
    first = run.deliver("a.txt", b"1")
    index_of(tmp_path).write_bytes(b"")
    assert run.verify(first.path) is None
    second = run.deliver("a.txt", b"2")
    assert Path(first.path).read_bytes() == b"1"
    assert run.delivered() == [second]


def test_a_delivery_that_a_crash_cut_short_is_repeated_under_its_name(tmp_path: Path) -> None:
    """D08: the record was written, the file did not yet appear."""
    run = workspace(tmp_path)
    cut = run.deliver("a.txt", b"1")
    Path(cut.path).unlink()
    assert run.delivered() == []
    assert run.deliver("a.txt", b"1") == cut
    assert run.delivered() == [cut]


def test_listings_show_deliveries_and_nothing_of_their_making(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    run.deliver("a.txt", b"1")
    (Path(run.delivery_dir) / ".xclaw-tmp-0123").write_bytes(b"left by a crash")
    assert [item.name for item in run.list_directory(run.delivery_dir)] == ["a.txt"]


def test_find_answers_for_whoever_delivered(tmp_path: Path) -> None:
    everyone = workspaces(tmp_path)
    pointers = [
        everyone.open(agent, task, f"run-{agent}").deliver("sub/a.txt", agent.encode())
        for agent, task in (("coder", "one"), ("规划师", "Zwei"))
    ]
    assert [workspaces(tmp_path).find(pointer.path) for pointer in pointers] == pointers
    for path in ("a.txt", "sub/a.txt", str(tmp_path), f"{tmp_path}/shared", f"{tmp_path}/agents/coder/one/a"):
        assert everyone.find(path) is None


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["a", "A", "a.v2", "é", "e\u0301", "b/a"]), st.binary(min_size=1, max_size=2)
        )
    )
)
def test_whatever_is_delivered_stays_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, deliveries: list[tuple[str, bytes]]
) -> None:
    """D6: no delivery is overwritten, lost, or has another's bytes."""
    run = workspace(tmp_path_factory.mktemp("any"))
    made: dict[str, tuple[Pointer, bytes]] = {}
    for name, content in deliveries:
        pointer = run.deliver(name, content)
        made[pointer.path] = (pointer, content)
    for pointer, content in made.values():
        assert Path(pointer.path).read_bytes() == content
        assert run.verify(pointer.path) == pointer
    assert run.delivered() == [pointer for pointer, _ in made.values()]


def test_what_is_too_big_or_empty_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    run = workspace(tmp_path)
    for change, content in (
        (run.deliver, b""),
        (run.deliver, b"x" * 64_000_001),
        (run.write, b"x" * 64_000_001),
    ):
        with pytest.raises(ToolFailed):
            change("a.bin", content)
    assert list(Path(run.delivery_dir).iterdir()) == list(Path(run.private_dir).iterdir()) == []
