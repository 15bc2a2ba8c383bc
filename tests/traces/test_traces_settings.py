"""Where the export of traces is told what to do."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from xclaw.settings import Settings, load_settings
from xclaw.traces.settings import TracesSettings


def load(
    directory: Path, env: Mapping[str, str] | None = None, project: str = "", user: str = ""
) -> Settings:
    (directory / "home").mkdir()
    (directory / "home" / "config.toml").write_text(user, encoding="utf-8")
    (directory / "xclaw.toml").write_text(project, encoding="utf-8")
    home = str(directory / "home")
    return load_settings(cwd=directory, env={"XCLAW_HOME": home, "HOME": home, **(env or {})})


def test_without_a_word_nothing_is_exported(tmp_path: Path) -> None:
    assert load(tmp_path).traces == TracesSettings()


def test_opentelemetrys_own_variables_count(tmp_path: Path) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "http://general:4318",
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://traces:4318/v1/traces",
        "OTEL_EXPORTER_OTLP_HEADERS": "a=1",
        "TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "XCLAW_TRACE_CONTENT": "true",
    }
    traces = load(tmp_path, env).traces
    assert traces.otlp_endpoint == "http://traces:4318/v1/traces"
    assert (traces.otlp_headers, traces.include_content) == ("a=1", True)
    assert traces.traceparent == env["TRACEPARENT"]


@pytest.mark.parametrize(
    "line", ['otlp_endpoint = "http://evil"', 'otlp_headers = "a=1"', "include_content = true"]
)
def test_a_project_file_decides_neither_where_traces_go_nor_what_is_in_them(
    tmp_path: Path, line: str
) -> None:
    """A project file may come with a repository that somebody else wrote."""
    settings = load(tmp_path, project=f"[traces]\n{line}\n")
    assert settings.traces == TracesSettings()
    assert "is ignored: a project file may not decide where your traces go" in settings.warnings[0]


def test_the_users_own_file_decides_and_a_project_may_switch_contents_off(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        user='[traces]\notlp_endpoint = "http://mine:4318"\ninclude_content = true\n',
        project="[traces]\ninclude_content = false\n",
    )
    assert settings.traces == TracesSettings("http://mine:4318")
    assert settings.warnings == ()


def test_headers_and_passwords_are_shown_to_nobody(tmp_path: Path) -> None:
    env = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": "https://me:hunter2@host",
        "OTEL_EXPORTER_OTLP_HEADERS": "Authorization=hunter2",
    }
    settings = load(tmp_path, env)
    assert "hunter2" not in repr(settings.explain())
    assert "Authorization=hunter2" not in repr(settings)
