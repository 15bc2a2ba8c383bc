"""Control groups are removed with what was made below them."""

from pathlib import Path

from xclaw.sandbox.linux.control_groups import oom_kills, remove_groups


def test_groups_are_removed_with_those_below_them(tmp_path: Path) -> None:
    """SPEC F3: a container's manager makes its own below the sandbox's."""
    for name in ("a/libpod-1", "a/libpod-2", "b"):
        (tmp_path / name).mkdir(parents=True)
    assert remove_groups([str(tmp_path / name) for name in ("a", "b", "never")])
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_told(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "file").touch()
    assert not remove_groups([str(tmp_path / "a")])


def test_kills_for_memory_are_counted_in_either_version_s_words() -> None:
    assert oom_kills("oom_kill_disable 0\nunder_oom 0\noom_kill 3\n") == 3
    assert oom_kills("low 0\nhigh 0\nmax 12\noom 1\noom_kill 1\noom_group_kill 0\n") == 1
    assert oom_kills("") == 0
