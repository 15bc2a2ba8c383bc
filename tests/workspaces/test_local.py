"""Where workspaces are, and who shares them (SPEC F1, I06)."""

from pathlib import Path

import pytest

from workspaces.places import workspace, workspaces
from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.contracts.ids import task_id_from
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceSettings


def colliding_runs() -> tuple[str, str, str]:
    """Two runs whose task ids are made the same way and come out the same."""
    seen: dict[str, str] = {}
    for number in range(100_000):
        run = f"run-{number}"
        task = task_id_from(run)
        if task in seen:
            return task, seen[task], run
        seen[task] = run
    raise AssertionError("no collision among 100,000 runs")


def test_the_layout_is_the_documented_one(tmp_path: Path) -> None:
    run = workspaces(tmp_path).open("coder", "a1b2c3", "run-1")
    assert run.private_dir == str(tmp_path / "agents" / "coder" / "a1b2c3")
    assert run.delivery_dir == str(tmp_path / "shared" / "a1b2c3")


def test_two_sessions_with_one_task_id_do_not_meet(tmp_path: Path) -> None:
    """I06: six digits collide sooner or later; the later run gets places of its own, also afterwards."""
    task, first_run, second_run = colliding_runs()
    first = workspace(tmp_path, "coder", task, first_run)
    second = workspace(tmp_path, "coder", task, second_run)
    assert first.private_dir == str(tmp_path / "agents" / "coder" / task)
    assert second.private_dir != first.private_dir
    assert second.delivery_dir != first.delivery_dir
    secret = first.write("a.txt", b"secret")
    pointer = first.deliver("a.txt", b"secret")
    for path in ("a.txt", secret, pointer.path):
        with pytest.raises(ToolFailed):
            second.read(path)
    for run, opened in ((first_run, first), (second_run, second)):
        again = workspace(tmp_path, "coder", task, run)
        assert (again.private_dir, again.delivery_dir) == (opened.private_dir, opened.delivery_dir)


def test_a_run_that_writes_nothing_leaves_nothing(tmp_path: Path) -> None:
    root = tmp_path / "ws"
    task = task_id_from("run-1")
    run = workspaces(root).open("coder", task, "run-1")
    for path in (".", run.private_dir, run.delivery_dir):
        assert run.list_directory(path) == []
    for path in ("a.txt", f"{run.delivery_dir}/a.txt"):
        with pytest.raises(ToolFailed, match="does not exist"):
            run.read(path)
    with pytest.raises(ToolFailed, match="does not exist"):
        run.list_directory("sub")
    assert run.verify("a.txt") is None
    assert run.delivered() == []
    assert not root.exists()


def test_two_living_runs_with_one_task_id_are_named_apart_before_they_write(tmp_path: Path) -> None:
    """I06: the names are in the task's header at once, and they are the same after a restart."""
    task, first_run, second_run = colliding_runs()
    opened = workspaces(tmp_path)
    first = opened.open("coder", task, first_run)
    second = opened.open("coder", task, second_run)
    assert len({first.private_dir, first.delivery_dir, second.private_dir, second.delivery_dir}) == 4
    restarted = workspaces(tmp_path)
    again = [restarted.open("coder", task, run) for run in (second_run, first_run)]
    assert [run.delivery_dir for run in again] == [second.delivery_dir, first.delivery_dir]


def test_of_two_processes_with_one_task_id_the_later_writer_moves(tmp_path: Path) -> None:
    """I06: both were named the same place before either wrote to it; still nobody sees the other's."""
    task, first_run, second_run = colliding_runs()
    first = workspaces(tmp_path).open("coder", task, first_run)
    second = workspaces(tmp_path).open("coder", task, second_run)
    secret = first.write("a.txt", b"secret")
    pointer = first.deliver("a.txt", b"secret")
    assert second.list_directory(".") == []
    assert second.verify("a.txt") is None
    for path in ("a.txt", secret, pointer.path):
        with pytest.raises(ToolFailed):
            second.read(path)
    assert Path(second.write("b.txt", b"x")).parent != Path(secret).parent
    assert second.deliver("a.txt", b"mine").version == 1
    assert first.read("a.txt").text == "secret"
    assert [item.name for item in first.list_directory(".")] == ["a.txt"]


def test_runs_of_one_session_share_its_files(tmp_path: Path) -> None:
    workspace(tmp_path, "orchestrator", "cli", "run-1").write("notes.txt", b"kept")
    assert workspace(tmp_path, "orchestrator", "cli", "run-2").read("notes.txt").text == "kept"


def test_runs_without_a_task_do_not_share_anything(tmp_path: Path) -> None:
    first, second = (workspace(tmp_path, "coder", "", run) for run in ("run-1", "run-2"))
    assert first.private_dir != second.private_dir
    assert first.delivery_dir != second.delivery_dir


def test_a_name_with_control_characters_is_a_clear_error(tmp_path: Path) -> None:
    """F04: the NUL case."""
    for agent, task in (("x\0y", "task"), ("coder", "x\0y")):
        with pytest.raises(UsageError, match="control character"):
            workspaces(tmp_path).open(agent, task, "run-1")


def test_nobody_else_on_the_machine_can_look_in(tmp_path: Path) -> None:
    run = workspace(tmp_path / "ws")
    for place in (tmp_path / "ws", Path(run.private_dir), Path(run.delivery_dir)):
        assert place.stat().st_mode & 0o077 == 0
    assert Path(run.write("a.txt", b"x")).stat().st_mode & 0o077 == 0


def test_a_root_behind_a_link_is_resolved_once(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    run = LocalWorkspaces(WorkspaceSettings(str(tmp_path / "link"))).open("coder", "task", "run-1")
    assert run.private_dir == str(tmp_path / "real" / "agents" / "coder" / "task")
    assert run.read(run.write("a.txt", b"x")).text == "x"


def granted(root: Path, *names: str) -> tuple[Pointer, ...]:
    author = workspace(root, "coder", "author", "run-author")
    return tuple(author.deliver(name, name.encode()) for name in names)


def test_a_granted_artifact_is_found_by_its_name(tmp_path: Path) -> None:
    """E3."""
    reader = workspace(tmp_path, "writer", "reader", "run-reader")
    pointers = granted(tmp_path, "sub/data.csv", "report.md")
    reader.grant(pointers)
    assert reader.read("report.md").text == "report.md"
    for path in (
        "data.csv",
        "sub/data.csv",
        pointers[0].path,
        f"{reader.private_dir}/../../../{pointers[0].path}",
    ):
        assert reader.read(path.replace(f"../../../{tmp_path}", "../../..")).text == "sub/data.csv"
    reader.write("report.md", b"my own")
    assert reader.read("report.md").text == "my own"


def test_a_name_of_several_artifacts_is_asked_back(tmp_path: Path) -> None:
    reader = workspace(tmp_path, "writer", "reader", "run-reader")
    pointers = granted(tmp_path, "one/data.csv", "two/data.csv")
    reader.grant(pointers)
    with pytest.raises(ToolFailed, match="several artifacts") as refused:
        reader.read("data.csv")
    assert all(pointer.path in str(refused.value) for pointer in pointers)
    assert reader.read("two/data.csv").text == "two/data.csv"


def test_a_grant_opens_no_directory_and_no_neighbour(tmp_path: Path) -> None:
    reader = workspace(tmp_path, "writer", "reader", "run-reader")
    mine, other = granted(tmp_path, "mine.md", "other.md")
    reader.grant((mine,))
    for path in (other.path, f"{mine.path}/../other.md", str(Path(mine.path).parent), "other.md"):
        with pytest.raises(ToolFailed):
            reader.read(path)
    with pytest.raises(ToolFailed):
        reader.list_directory(str(Path(mine.path).parent))


def test_a_grant_outside_the_delivered_files_opens_nothing(tmp_path: Path) -> None:
    """A pointer is data: one that names /etc/passwd is no permission to read it."""
    (tmp_path / "secret").write_text("s3cret")
    reader = workspace(tmp_path / "ws", "writer", "reader", "run-reader")
    private = workspace(tmp_path / "ws", "coder", "author", "run-author").write("a.txt", b"s3cret")
    for path in ("/etc/passwd", str(tmp_path / "secret"), private, f"{tmp_path}/ws/shared/../../secret"):
        reader.grant((Pointer(path, "", 6, "coder"),))
        with pytest.raises(ToolFailed) as refused:
            reader.read(path)
        assert "s3cret" not in str(refused.value)
        assert reader.verify(path) is None


def test_a_granted_file_that_became_a_link_or_changed_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s3cret")
    reader = workspace(tmp_path / "ws", "writer", "reader", "run-reader")
    linked, changed = granted(tmp_path / "ws", "linked.md", "changed.md")
    reader.grant((linked, changed))
    Path(linked.path).unlink()
    Path(linked.path).symlink_to(tmp_path / "secret")
    Path(changed.path).chmod(0o600)
    Path(changed.path).write_text("longer than before")
    for pointer in (linked, changed):
        with pytest.raises(ToolFailed) as refused:
            reader.read(pointer.path)
        assert "s3cret" not in str(refused.value)
        assert reader.verify(pointer.path) is None


def test_an_artifact_that_was_handed_on_verifies_for_its_reader(tmp_path: Path) -> None:
    """E1: a worker may point at what it was given; the pointer says whose it is."""
    reader = workspace(tmp_path, "writer", "reader", "run-reader")
    [pointer] = granted(tmp_path, "report.md")
    assert reader.verify(pointer.path) is None
    reader.grant((pointer,))
    assert reader.verify(pointer.path) == pointer
    assert reader.delivered() == []


def test_a_spilled_output_is_kept_apart_and_read_again(tmp_path: Path) -> None:
    """E2."""
    run = workspace(tmp_path)
    names = ["view_file-c1.txt", "view_file-c1.txt", "../../x", "a\0b", ""]
    paths = [run.spill(name, f"output {number}") for number, name in enumerate(names)]
    assert [run.read(path).text for path in paths] == [f"output {number}" for number in range(5)]
    assert run.spill(names[0], "output 0") == paths[0]
    assert all(path.startswith(f"{run.private_dir}/outputs/") for path in paths)
    assert run.read(run.spill("odd", "\ud800\0")).size == 7
