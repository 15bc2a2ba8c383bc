"""Workspaces of sandboxed runs: paths and links mean what they mean in the sandbox (SPEC F2, F3)."""

import os
from pathlib import Path

import pytest

from xclaw.contracts.artifacts import Pointer
from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.sandboxed import SandboxedWorkspace
from xclaw.workspaces.settings import WorkspaceSettings
from xclaw.workspaces.workspace import LocalWorkspace


def opened(root: Path, agent: str = "coder", task: str = "abc123", run_id: str = "run-1") -> LocalWorkspace:
    workspaces = LocalWorkspaces(WorkspaceSettings(str(root), mode="full", durable=False))
    return workspaces.open(agent, task, run_id)


def private(workspace: LocalWorkspace) -> Path:
    workspace.prepare()
    return Path(workspace.private_dir)


def test_the_files_are_the_same_by_either_path(tmp_path: Path) -> None:
    """F3."""
    workspace = opened(tmp_path)
    assert isinstance(workspace, SandboxedWorkspace)
    assert workspace.shown_dir == "/workspace"
    assert workspace.write("/workspace/src/a.py", b"X = 1") == "/workspace/src/a.py"
    assert workspace.write("b.py", b"Y = 2") == "/workspace/b.py"
    assert workspace.read("src/a.py").text == "X = 1"
    assert workspace.content("/workspace/../workspace/b.py") == b"Y = 2"
    assert [item.name for item in workspace.list_directory("/workspace")] == ["b.py", "src"]
    assert (Path(workspace.private_dir) / "src" / "a.py").read_bytes() == b"X = 1"
    assert workspace.spill("call-1.txt", "long").startswith("/workspace/outputs/")
    assert workspace.edit("/workspace/b.py", lambda old: old + b"0", 100) == "/workspace/b.py"
    assert workspace.read("b.py").text == "Y = 20"


@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "/", "/workspacex/a", "../a", "/input/../etc/passwd", "/proc/self/environ", "~/.ssh/id"],
)
def test_nothing_else_is_there_and_the_error_says_what_is(tmp_path: Path, path: str) -> None:
    """F2, F3."""
    workspace = opened(tmp_path)
    for action in (
        lambda: workspace.read(path),
        lambda: workspace.write(path, b"x"),
        lambda: workspace.content(path),
    ):
        with pytest.raises(ToolFailed) as caught:
            action()
        if not path.startswith("~"):
            assert "There are /workspace" in str(caught.value)
            assert str(tmp_path) not in str(caught.value)


def test_the_private_directory_of_this_machine_is_no_path_in_the_sandbox(tmp_path: Path) -> None:
    """F3."""
    workspace = opened(tmp_path)
    workspace.write("a", b"x")
    with pytest.raises(ToolFailed):
        workspace.read(f"{workspace.private_dir}/a")


def test_links_lead_where_they_lead_in_the_sandbox(tmp_path: Path) -> None:
    """F2: those to /workspace and /input are followed, all others are not."""
    workspace = opened(tmp_path)
    workspace.grant((_delivered(tmp_path, "given.txt", b"given"),))
    place = private(workspace)
    (place / "deep" / "er").mkdir(parents=True)
    (place / "file").write_text("mine")
    good = {
        "absolute": "/workspace/file",
        "relative": "file",
        "deep/er/up": "../../file",
        "deep/er/above": "../../../workspace/file",
        "handed": "/input/given.txt",
        "deep/handed": "../../input/given.txt",
        "twice": "absolute",
    }
    bad = {
        "etc": "/etc/passwd",
        "host": str(place / "file"),
        "shared": str(tmp_path / "shared"),
        "out": "../../other",
        "deep/far": "../../../../../../../../../etc/passwd",
        "gone": "/tmp/file",
    }
    for name, target in {**good, **bad}.items():
        (place / name).symlink_to(target)
    for name in good:
        assert workspace.read(name).text in ("mine", "given"), name
    for name in bad:
        with pytest.raises(ToolFailed):
            workspace.read(name)
        with pytest.raises(ToolFailed):
            workspace.write(name, b"harm")
        with pytest.raises(ToolFailed):
            workspace.write(f"{name}/below", b"harm")
    with pytest.raises(ToolFailed):
        workspace.write("handed", b"harm")
    assert workspace.read("/input/given.txt").text == "given"


def test_what_is_granted_is_copied_under_its_delivered_name_and_clashes_are_apart(tmp_path: Path) -> None:
    """F3, E3."""
    first = _delivered(tmp_path, "report.md", b"one", task="aaaaa1")
    second = _delivered(tmp_path, "report.md", b"two", task="aaaaa2")
    author = opened(tmp_path, "coder", "aaaaa1", "run-aaaaa1")
    later = author.deliver("report.md", b"three")
    assert Path(later.path).name == "report.v2.md"
    workspace = opened(tmp_path)
    workspace.grant((first, second))
    workspace.grant((later, first))
    assert [workspace.shown(pointer) for pointer in (first, second, later)] == [
        "/input/report.md",
        "/input/report-2.md",
        "/input/report-3.md",
    ]
    assert [item.name for item in workspace.list_directory("/input")] == [
        "report-2.md",
        "report-3.md",
        "report.md",
    ]
    for pointer, content in ((first, "one"), (second, "two"), (later, "three")):
        assert workspace.read(workspace.shown(pointer)).text == content
        assert workspace.read(pointer.path).text == content, "the pointer itself is not read any more"
    workspace.prepare()
    copies = Path(workspace.input_dir)
    assert sorted(file.read_text() for file in copies.iterdir()) == ["one", "three", "two"]
    assert {oct(file.stat().st_mode & 0o777) for file in copies.iterdir()} == {"0o444"}
    assert copies.stat().st_mode & 0o777 == 0o755
    with pytest.raises(ToolFailed, match="to be read only"):
        workspace.write("/input/report.md", b"harm")
    again = opened(tmp_path)
    again.grant((first, second, later))
    assert again.shown(later) == "/input/report-3.md", "a run that is taken up has other names"


def test_a_run_s_paths_are_what_it_began_with_whatever_the_settings_say_now(tmp_path: Path) -> None:
    """J1: a question about its path is judged alike in a process of another mode."""
    host = LocalWorkspaces(WorkspaceSettings(str(tmp_path), durable=False))
    workspace = host.open("coder", "abc123", "run-1", sandboxed=True)
    assert workspace.judged("/workspace/a")[0] == opened(tmp_path).judged("/workspace/a")[0]
    assert host.open("coder", "abc123", "run-1").judged("/workspace/a") == ("/workspace/a", "")


def test_what_is_granted_later_is_there_at_the_next_call(tmp_path: Path) -> None:
    """F3."""
    workspace = opened(tmp_path)
    workspace.prepare()
    assert workspace.list_directory("/input") == []
    workspace.grant((_delivered(tmp_path, "late.txt", b"late"),))
    workspace.prepare()
    assert (Path(workspace.input_dir) / "late.txt").read_bytes() == b"late"
    workspace.release()
    assert not Path(workspace.input_dir).exists()
    assert workspace.content("/input/late.txt") == b"late"
    workspace.prepare()
    assert (Path(workspace.input_dir) / "late.txt").read_bytes() == b"late"


def test_an_artifact_that_has_changed_is_not_handed_on(tmp_path: Path) -> None:
    """F3: and keeps nobody from the others."""
    changed, sound = (
        _delivered(tmp_path, "a.txt", b"a", "aaaaa1"),
        _delivered(tmp_path, "b.txt", b"b", "aaaaa2"),
    )
    Path(changed.path).chmod(0o600)
    Path(changed.path).write_bytes(b"other")
    workspace = opened(tmp_path)
    workspace.grant((changed, sound))
    workspace.prepare()
    assert [file.name for file in Path(workspace.input_dir).iterdir()] == ["b.txt"]
    with pytest.raises(ToolFailed, match="changed since"):
        workspace.read("/input/a.txt")


@pytest.mark.parametrize("path", ["/workspace/a.md", "sub/a.md", "..", "/a.md", "a/../b.md", ""])
def test_deliver_takes_a_bare_name(tmp_path: Path, path: str) -> None:
    """D6."""
    workspace = opened(tmp_path)
    with pytest.raises(ToolFailed):
        workspace.deliver(path, b"x")
    pointer = workspace.deliver("a.md", b"x")
    assert workspace.verify("a.md") == pointer
    assert workspace.read(pointer.path).text == "x"


def test_rules_about_paths_judge_what_is_meant_on_this_machine(tmp_path: Path) -> None:
    """J1, F3."""
    workspace = opened(tmp_path)
    place = private(workspace)
    (place / "secret").mkdir()
    (place / "link").symlink_to("/workspace/secret")
    (place / "out").symlink_to("/etc")
    named, real = workspace.judged("/workspace/link/x")
    assert (named, real) == (str(place / "link" / "x"), str(place / "secret" / "x"))
    assert workspace.judged("link/x")[1] == str(place / "secret" / "x")
    assert workspace.judged("/workspace/nothing/here")[0] == str(place / "nothing" / "here")
    assert workspace.judged("out/passwd") == (str(place / "out" / "passwd"), "")
    assert workspace.judged("/etc/passwd") == ("/etc/passwd", "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_what_is_written_into_a_directory_of_the_sandbox_s_user_is_that_user_s(tmp_path: Path) -> None:
    """F3: files, directories on the way, and what is laid out; never what is root's own."""
    workspace = opened(tmp_path)
    given = _delivered(tmp_path, "checked.py", b"x")
    workspace.grant((given,))
    place = private(workspace)
    os.chown(place, 70_001, 70_001)
    workspace.write("src/deep/a.py", b"x")
    workspace.place((given,))
    for name in ("src", "src/deep", "src/deep/a.py", "checked.py"):
        assert (place / name).stat().st_uid == 70_001, name
    assert Path(workspace.deliver("a.py", b"x").path).stat().st_uid == 0
    assert Path(workspace.input_dir).stat().st_uid == 0


def test_an_artifact_that_was_not_granted_is_not_there(tmp_path: Path) -> None:
    """E3: a pointer that was never granted."""
    hidden = _delivered(tmp_path, "hidden.txt", b"secret")
    workspace = opened(tmp_path)
    for path in (hidden.path, "/input/hidden.txt"):
        with pytest.raises(ToolFailed):
            workspace.read(path)


def _delivered(root: Path, name: str, content: bytes, task: str = "fffff1") -> Pointer:
    return opened(root, "coder", task, f"run-{task}").deliver(name, content)
