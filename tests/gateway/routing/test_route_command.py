"""`xclaw route`: explains, shows rules, checks files."""

import json
from pathlib import Path
from typing import cast

import pytest

from gateway.routing.routing_agents import HERE
from xclaw.cli.route import check, explain, show_rules
from xclaw.contracts.errors import UsageError

pytestmark = pytest.mark.usefixtures("home")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XCLAW_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_decision_is_explained(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    assert explain("帮我审查一下 login.py", None, as_json=False) == 0
    out = capsys.readouterr().out
    assert out.startswith("reviewer  (rule)\n")
    assert "yes  review -> reviewer: 审查" in out
    assert "no   security -> skeptic: " in out
    assert not (home / "home").exists()


def test_a_decision_is_explained_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("Review it and fix it", None, as_json=True) == 0
    form = cast("dict[str, object]", json.loads(capsys.readouterr().out))
    assert (form["agent"], form["by"]) == ("orchestrator", "default")
    assert len(cast("list[object]", form["considered"])) == 4


def test_it_says_that_a_router_model_is_not_asked(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    (home / "xclaw.toml").write_text('[router]\norder = ["rules", "model"]\nmodel = "script:none"\n', "utf-8")
    assert explain("hello", None, as_json=False) == 0
    assert "router model" in capsys.readouterr().out


def test_the_rules_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert show_rules(None, as_json=False) == 0
    out = capsys.readouterr().out
    assert out.startswith("1. review -> reviewer\n")
    assert "漏洞" in out
    assert show_rules(None, as_json=True) == 0
    form = cast("dict[str, list[dict[str, object]]]", json.loads(capsys.readouterr().out))
    assert [rule["agent"] for rule in form["rules"]] == ["reviewer", "writer", "optimizer", "skeptic"]


def test_a_file_without_misses_ends_well(capsys: pytest.CaptureFixture[str]) -> None:
    assert check(str(HERE / "cases.jsonl"), None, as_json=False) == 0
    assert "87 of 87 right (100.0 %)" in capsys.readouterr().out


def test_misses_and_bad_lines_are_told_with_their_numbers(
    capsys: pytest.CaptureFixture[str], home: Path
) -> None:
    path = home / "set.jsonl"
    path.write_bytes(
        '\ufeff{"text": "Review this function", "route": "reviewer"}\n'
        "\n"
        '{"text": "Review \u001b this", "route": "Writer"}\n'.replace("\u001b", "\\u001b").encode()
        + b"not json\n"
        + b'{"text": "x"}\n'
        + b'{"text": "\xff", "route": "coder"}\n'
        + b'{"text": "x", "route": "ghost"}'
    )
    assert check(str(path), None, as_json=False) == 1
    shown = capsys.readouterr()
    assert "line 3: Review" in shown.out
    assert "should go to writer, went to reviewer: rule 'review' by 'review'" in shown.out
    assert "1 of 2 right (50.0 %)" in shown.out
    assert "\x1b" not in shown.out
    for number in (4, 5, 6, 7):
        assert f"line {number}: " in shown.err
    assert check(str(path), None, as_json=True) == 1
    form = cast("dict[str, object]", json.loads(capsys.readouterr().out))
    assert (form["checked"], form["right"]) == (2, 1)
    assert [bad["line"] for bad in cast("list[dict[str, object]]", form["bad_lines"])] == [4, 5, 6, 7]


def test_a_long_file_shows_how_far_it_is(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    path = home / "long.jsonl"
    path.write_text('{"text": "hello", "route": "orchestrator"}\n' * 2_100, "utf-8")
    assert check(str(path), None, as_json=False) == 0
    shown = capsys.readouterr()
    assert shown.err.splitlines() == ["1,000 lines, 0 missed", "2,000 lines, 0 missed"]
    assert "2100 of 2100 right" in shown.out


def test_nothing_to_check_is_wrong_use(home: Path) -> None:
    (home / "empty.jsonl").write_text("\n\n", "utf-8")
    with pytest.raises(UsageError, match="nothing to check"):
        check(str(home / "empty.jsonl"), None, as_json=False)
    with pytest.raises(UsageError, match="cannot be read"):
        check(str(home / "none.jsonl"), None, as_json=False)
