"""Progress of the embedded model's preparation."""

import pytest

from xclaw.cli.preparing import PreparationProgress


def test_away_from_a_terminal_each_stage_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    progress = PreparationProgress()
    for done in range(0, 101, 10):
        progress("join", done, 100)
    progress("verify", 1, 100)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.splitlines() == [
        "xclaw: joining the embedded model's parts (first use)",
        "xclaw: checking the embedded model",
    ]


def test_on_a_terminal_one_line_is_drawn_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    progress = PreparationProgress()
    progress("download", 500_000_000, 1_000_000_000)
    progress("download", 1_000_000_000, 1_000_000_000)
    lines = capsys.readouterr().err
    assert "\r\x1b[Kxclaw: downloading the embedded model 50% of 1,000 MB" in lines
    assert lines.endswith("100% of 1,000 MB\n")
