"""Commands that look: trace, tasks, agents, config, doctor."""

import json
import re
from pathlib import Path
from typing import cast

import pytest
from xclaw_command import HELLO, Json, Xclaw


@pytest.fixture(scope="module")
def worked(tmp_path_factory: pytest.TempPathFactory) -> Xclaw:
    """A home in which one piece of work was done."""
    xclaw = Xclaw(tmp_path_factory.mktemp("worked"))
    assert xclaw("run", "write hello", "-s", "mine", "-m", xclaw.script(HELLO)).code == 0
    return xclaw


@pytest.fixture
def xclaw(tmp_path: Path) -> Xclaw:
    return Xclaw(tmp_path)


def test_a_trace_shows_tree_and_timeline_with_tokens_and_cost(worked: Xclaw) -> None:
    """K5."""
    out = worked("trace").out
    assert "session mine" in out
    assert "[scripted model]" in out
    assert "orchestrator  success" in out
    assert "└─ coder  delegate  success" in out
    assert "hello.py (9 bytes)" in out
    assert "orchestrator · tool delegate" in out
    assert "4 model calls" in out


def test_a_trace_as_json_has_the_same_sums_as_the_run_reported(worked: Xclaw) -> None:
    """U01."""
    result = worked("run", "again", "-m", "script:script.yaml", "-o", "json").document
    trace = worked("trace", "last", "--json").document
    tree = cast("Json", trace["tree"])
    (child,) = cast("list[Json]", tree["children"])
    total, own, below = (cast("Json", form) for form in (tree["total"], tree["own"], child["total"]))
    for name in ("input_tokens", "output_tokens", "calls"):
        assert cast("int", own[name]) + cast("int", below[name]) == total[name]
        assert total[name] == cast("Json", result["usage"])[name]
    kinds = {cast("str", span["kind"]) for span in cast("list[Json]", trace["timeline"])}
    assert kinds == {"run", "model", "tool"}


def test_prompts_show_everything_that_was_said(worked: Xclaw) -> None:
    out = worked("trace", "--session", "mine", "--prompts").out
    assert "--- system (dialect native" in out
    assert "[Shared delivery dir: " in out
    assert "All done: hello.py is written." in out
    conversations = cast(
        "list[Json]", worked("trace", "--session", "mine", "--prompts", "--json").document["conversations"]
    )
    assert [conversation["agent"] for conversation in conversations] == ["orchestrator", "coder"]


def test_a_run_can_be_named_by_the_beginning_of_its_id_and_a_worker_too(worked: Xclaw) -> None:
    tree = cast("Json", worked("trace", "--session", "mine", "--json").document["tree"])
    (child,) = cast("list[Json]", tree["children"])
    out = worked("trace", str(child["run_id"])[:12]).out
    assert "coder  delegate  success" in out
    assert "orchestrator" not in out


def test_a_run_or_session_that_does_not_exist_is_said(worked: Xclaw) -> None:
    for arguments, reason in (
        (("trace", "nothing"), "there is no run 'nothing'"),
        (("trace", "--session", "none"), "there is no session 'none'"),
        (("cancel", "nothing"), "there is no run 'nothing'"),
        (("resume", "nothing"), "there is no run 'nothing'"),
        (("tasks", "nothing"), "there is no run 'nothing'"),
        (("resume", "last"), "nothing to resume"),
    ):
        ended = worked(*arguments)
        assert (ended.code, reason in ended.err) == (2, True), ended


def test_cancelling_what_has_ended_says_so(worked: Xclaw) -> None:
    ended = worked("cancel", "last")
    assert ended.code == 0
    assert "had ended already, as success" in ended.err


def test_in_a_fresh_home_there_is_nothing_to_show_and_a_hint(xclaw: Xclaw) -> None:
    ended = xclaw("trace")
    assert ended.code == 2
    assert "there are no runs yet" in ended.err
    assert "no runs yet" in xclaw("tasks").out


def test_tasks_lists_runs_and_the_steps_of_one(worked: Xclaw) -> None:
    """E5."""
    assert "success" in worked("tasks").out
    out = worked("tasks", "last").out
    assert "- coder " in out
    assert ": done  Write hello.py" in out
    assert "/hello.py" in out
    steps = cast("Json", worked("tasks", "last", "--json").document["steps"])
    assert [cast("Json", step)["status"] for step in steps.values()] == ["done"]


def test_agents_are_listed_and_shown(xclaw: Xclaw) -> None:
    directory = xclaw.directory / ".xclaw" / "agents"
    directory.mkdir(parents=True)
    (directory / "poet.md").write_text("---\nname: poet\ndescription: Writes poems.\n---\nRhyme.\n", "utf-8")
    out = xclaw("agents").out
    assert {"orchestrator", "coder", "skeptic"} <= {line.split()[0] for line in out.splitlines()}
    assert "poet" in out
    assert str(directory / "poet.md") in out
    assert "Rhyme." in xclaw("agents", "Poet").out
    assert xclaw("agents", "poet", "--json").document["instructions"] == "Rhyme."
    ended = xclaw("agents", "poe")
    assert ended.code == 2
    assert "Did you mean 'poet'?" in ended.err


def test_config_shows_values_with_their_sources_and_no_secrets(xclaw: Xclaw) -> None:
    (xclaw.directory / "xclaw.toml").write_text("[runtime]\nmax_depth = 2\n", "utf-8")
    out = xclaw("config", OPENAI_API_KEY="sk-secret").out
    assert "sk-secret" not in out
    (line,) = (line for line in out.splitlines() if line.startswith("runtime.max_depth "))
    assert line.endswith(f"2  ({xclaw.directory / 'xclaw.toml'}:2)")
    assert xclaw("config", "get", "runtime.max_depth").out == "2\n"
    assert json.loads(xclaw("config", "get", "models.chain", "--json", XCLAW_MODEL="a:b").out) == ["a:b"]
    assert str(xclaw.home) in xclaw("config", "path").out
    ended = xclaw("config", "get", "runtime.max_dept")
    assert ended.code == 2
    assert "Did you mean runtime.max_depth" in ended.err


def test_doctor_says_what_is_missing_and_exits_with_1(xclaw: Xclaw) -> None:
    ended = xclaw("doctor")
    assert ended.code == 1
    assert any(line.startswith("problem") and "models" in line for line in ended.out.splitlines())
    assert "OPENAI_API_KEY" in ended.out


def test_doctor_says_which_git_there_is_and_that_work_on_a_project_needs_one(xclaw: Xclaw) -> None:
    model = xclaw.script(HELLO)
    found = xclaw("doctor", XCLAW_MODEL=model).out.splitlines()
    assert any(re.match(r"ok +git +\d+\.\d+.*, for work on a project", line) for line in found)
    xclaw.home.mkdir(exist_ok=True)
    (xclaw.home / "config.toml").write_text('[project]\ngit = "no-such-git"\n')
    missing = xclaw("doctor", XCLAW_MODEL=model)
    assert missing.code == 0
    told = "no-such-git is not there; work on a project needs git 2.38 or later: install it"
    assert any(re.match(rf"note +git +{told}", line) for line in missing.out.splitlines())


def test_doctor_is_content_with_a_script_and_not_with_an_endpoint_that_is_silent(xclaw: Xclaw) -> None:
    model = xclaw.script(HELLO)
    ended = xclaw("doctor", "--json", XCLAW_MODEL=model)
    assert (ended.code, ended.document["ok"]) == (0, True)
    silent = xclaw("doctor", OPENAI_BASE_URL="http://127.0.0.1:9/v1")
    assert silent.code == 1
    assert "http://127.0.0.1:9/v1/models does not answer" in silent.out
    assert xclaw("doctor", XCLAW_MODEL="script:none.yaml").code == 1


def test_doctor_notices_a_workspace_that_cannot_be_written_and_a_damaged_database(xclaw: Xclaw) -> None:
    (xclaw.directory / "file").write_text("", "utf-8")
    blocked = xclaw("doctor", "-w", "file/inside")
    assert blocked.code == 1
    assert any(line.startswith("problem") and "workspace" in line for line in blocked.out.splitlines())
    (xclaw.home / "workspace").mkdir(parents=True)
    (xclaw.home / "workspace" / "xclaw.db").write_bytes(b"this is no database" * 100)
    damaged = xclaw("doctor")
    assert any(line.startswith("problem") and "database" in line for line in damaged.out.splitlines())
    assert "Traceback" not in damaged.err


def test_doctor_tries_each_sandbox_and_says_which_one_is_used(xclaw: Xclaw) -> None:
    """F3."""
    model = xclaw.script(HELLO)
    ended = xclaw("doctor", "--json", XCLAW_MODEL=model, XCLAW_MODE="full", XCLAW_SANDBOX="bubblewrap")
    found = {cast("str", one["name"]): one for one in cast("list[Json]", ended.document["findings"])}
    assert cast("str", found["sandbox bubblewrap"]["text"]).startswith("user id ")
    assert found["sandbox host"]["level"] == "note"
    assert found["sandbox"]["text"] == "bubblewrap: commands of agents run in it"
    assert found["shell"]["text"] == "every command of an agent runs in a sandbox"
    without = xclaw(
        "doctor", XCLAW_MODEL=model, XCLAW_SANDBOX="bubblewrap", XCLAW_MODE="full", PATH="/nowhere"
    )
    assert without.code == 1
    assert "bubblewrap is not installed" in without.out
