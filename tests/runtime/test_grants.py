"""The user's own file of what was answered "always": added to, never rewritten, never lost."""

import fcntl
import logging
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from xclaw.contracts.errors import UsageError
from xclaw.runtime.grants import Grant, GrantFile


def file_in(directory: Path) -> GrantFile:
    return GrantFile(directory / "home" / "permissions.toml")


def test_a_grant_is_one_user_s_and_one_agent_s(tmp_path: Path) -> None:
    """A03."""
    file = file_in(tmp_path)
    assert file.rules("owner", "coder") == ()
    file.add(Grant("owner", "coder", "shell(git *)"))
    file.add(Grant("owner", "coder", "shell(git *)"))
    file.add(Grant("bob", "coder", "shell(ls *)"))
    assert file.rules("owner", "coder") == ("shell(git *)",)
    assert file.rules("bob", "coder") == ("shell(ls *)",)
    assert file.rules("owner", "reviewer") == ()
    assert file.path.stat().st_mode & 0o077 == 0
    assert file_in(tmp_path).rules("owner", "coder") == ("shell(git *)",)


def test_what_a_person_wrote_there_stays(tmp_path: Path) -> None:
    """J1: comments, order, and a file without a line end."""
    file = file_in(tmp_path)
    file.path.parent.mkdir()
    mine = '# mine\n[[allow]]\nagent = "coder" # no user: the owner\nrule = "shell(make *)"'
    file.path.write_text(mine)
    file.add(Grant("owner", "coder", "shell(ls)"))
    assert file.path.read_text().startswith(mine)
    assert file.rules("owner", "coder") == ("shell(make *)", "shell(ls)")
    file.path.write_text("")
    assert file.rules("owner", "coder") == ()


@given(
    st.text(min_size=1, max_size=40), st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=40)
)
def test_any_name_and_any_rule_come_back_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, agent: str, inner: str
) -> None:
    agent = agent.encode("utf-8", "replace").decode()
    file = GrantFile(tmp_path_factory.mktemp("grants") / "permissions.toml")
    rule = f"shell(x{inner}x)"
    file.add(Grant("owner", agent, rule))
    tomllib.loads(file.path.read_text("utf-8"))
    assert file.rules("owner", agent) == (rule,)


@pytest.mark.parametrize(
    "text",
    ["[[allow", "allow = 1", "[[allow]]\nagent = 1\nrule = 'x'", "[[allow]]\nagent='a'\nrule='('", "\xff"],
)
def test_a_file_that_cannot_be_read_grants_nothing_and_is_not_touched(
    tmp_path: Path, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    file = file_in(tmp_path)
    file.path.parent.mkdir()
    file.path.write_bytes(text.encode("latin-1"))
    with caplog.at_level(logging.WARNING):
        assert file.rules("owner", "coder") == ()
    assert "permissions.toml" in caplog.text
    with pytest.raises(UsageError, match=r"permissions\.toml"):
        file.add(Grant("owner", "coder", "shell(ls)"))
    assert file.path.read_bytes() == text.encode("latin-1")


def test_a_file_that_is_a_link_stays_one(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    file.path.parent.mkdir()
    (tmp_path / "real.toml").write_text("# kept elsewhere\n")
    file.path.symlink_to(tmp_path / "real.toml")
    file.add(Grant("owner", "coder", "shell(ls)"))
    assert file.path.is_symlink()
    assert (tmp_path / "real.toml").read_text().startswith("# kept elsewhere\n")
    assert file.rules("owner", "coder") == ("shell(ls)",)


WRITER = """
import sys
from pathlib import Path
from xclaw.runtime.grants import Grant, GrantFile
file = GrantFile(Path(sys.argv[1]))
for number in range(20):
    file.add(Grant("owner", "coder", f"shell(echo {sys.argv[2]} {number})"))
"""


def test_processes_that_add_at_once_lose_nothing(tmp_path: Path) -> None:
    """D07's kind."""
    file = file_in(tmp_path)
    started = [
        subprocess.Popen([sys.executable, "-c", WRITER, str(file.path), name]) for name in ("a", "b", "c")
    ]
    assert [process.wait(60) for process in started] == [0, 0, 0]
    assert len(file.rules("owner", "coder")) == 60
    assert sorted(path.name for path in file.path.parent.iterdir()) == [
        "permissions.toml",
        "permissions.toml.lock",
    ]


@pytest.mark.parametrize("text", ['allow = [{agent = "coder", rule = "shell(ls)"}]\n', "allow = []\n"])
def test_a_list_that_nothing_can_be_added_to_stays_as_it_was_written(tmp_path: Path, text: str) -> None:
    """D06: a further entry below it would make the whole file unreadable, and every grant in it void."""
    file = file_in(tmp_path)
    file.path.parent.mkdir()
    file.path.write_text(text)
    before = file.rules("owner", "coder")
    with pytest.raises(UsageError, match=r"write each as \[\[allow\]\]"):
        file.add(Grant("owner", "coder", "shell(git status)"))
    assert file.path.read_text() == text
    assert file.rules("owner", "coder") == before


def test_a_file_that_an_editor_marked_as_utf_8_is_read(tmp_path: Path) -> None:
    file = file_in(tmp_path)
    file.path.parent.mkdir()
    file.path.write_bytes(b"\xef\xbb\xbf[[allow]]\nagent = 'coder'\nrule = 'shell(ls)'\n")
    file.add(Grant("owner", "coder", "shell(git status)"))
    assert file.rules("owner", "coder") == ("shell(ls)", "shell(git status)")


def test_a_process_that_was_stopped_with_the_lock_holds_nobody_up_for_ever(tmp_path: Path) -> None:
    """D01's kind: who was stopped with the lock in its hands is named instead of waited for."""
    file = GrantFile(file_in(tmp_path).path, patience_s=0.05)
    file.path.parent.mkdir()
    with Path(f"{file.path}.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(UsageError, match="locked by another process"):
            file.add(Grant("owner", "coder", "shell(ls)"))
    file.add(Grant("owner", "coder", "shell(ls)"))
    assert file.rules("owner", "coder") == ("shell(ls)",)
