"""Rules in settings files: the user's, and what a project's file may add to them (SPEC J1)."""

from pathlib import Path

import pytest

from xclaw.contracts.errors import UsageError
from xclaw.settings import Overrides, Settings, load_settings


def load(tmp_path: Path, user: str = "", project: str = "", **overrides: bool) -> Settings:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text(user)
    (tmp_path / "xclaw.toml").write_text(project)
    return load_settings(
        cwd=tmp_path,
        env={"XCLAW_HOME": str(home), "HOME": str(tmp_path)},
        overrides=Overrides(**overrides),  # pyright: ignore[reportArgumentType] - test shorthand
    )


USER = """
[permissions]
mode = "accept-edits"
allow = ["shell(git *)"]
ask = ["web_fetch"]
deny = ["shell(rm *)"]
unattended = "park"
approval_timeout_s = 60
"""


def test_a_user_s_file_says_everything(tmp_path: Path) -> None:
    permissions = load(tmp_path, USER).permissions
    assert permissions.mode == "accept-edits"
    assert permissions.allow == ("shell(git *)",)
    assert permissions.ask == ("web_fetch",)
    assert permissions.deny == ("shell(rm *)",)
    assert permissions.unattended == "park"
    assert permissions.approval_timeout_s == 60


def test_a_project_s_file_adds_to_ask_and_deny_and_takes_nothing_away(tmp_path: Path) -> None:
    """J1: it may come with somebody else's repository."""
    project = """
[permissions]
mode = "plan"
allow = ["shell"]
ask = ["write_file"]
deny = []
unattended = "deny"
approval_timeout_s = 1
"""
    settings = load(tmp_path, USER, project)
    permissions = settings.permissions
    assert permissions.allow == ("shell(git *)",)
    assert permissions.ask == ("web_fetch", "write_file")
    assert permissions.deny == ("shell(rm *)",)
    assert (permissions.mode, permissions.unattended, permissions.approval_timeout_s) == (
        "accept-edits",
        "park",
        60,
    )
    ignored = [warning for warning in settings.warnings if "is ignored" in warning]
    assert len(ignored) == 4
    sources = {row.key: row.source for row in settings.explain()}
    assert "config.toml" in sources["permissions.ask"]
    assert "xclaw.toml" in sources["permissions.ask"]


def test_a_project_s_file_alone_can_ask_and_deny(tmp_path: Path) -> None:
    """J1."""
    settings = load(tmp_path, "", '[permissions]\ndeny = ["shell"]\nask = ["*"]\n')
    assert settings.permissions.deny == ("shell",)
    assert settings.permissions.ask == ("*",)
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('allow = ["shell("]', "is no rule"),
        ('deny = ["shell()"]', "empty pattern"),
        ("ask = [1]", "a list of texts"),
        ("deny = 1", "a list of texts"),
        ('mode = "yolo"', '"accept-edits"'),
        ('unattended = "maybe"', '"park" or "deny"'),
        ("approval_timeout_s = -1", "more than 0"),
    ],
)
def test_what_is_no_rule_is_refused_with_its_place(tmp_path: Path, text: str, complaint: str) -> None:
    with pytest.raises(UsageError) as refused:
        load(tmp_path, f"[permissions]\n{text}\n")
    assert "config.toml:2" in str(refused.value)
    assert complaint in str(refused.value)


def test_a_list_of_two_files_that_is_wrong_is_refused_too(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a list of texts"):
        load(tmp_path, '[permissions]\ndeny = ["shell"]\n', "[permissions]\ndeny = 1\n")
