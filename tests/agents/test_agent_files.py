"""Agent files: what they may hold, and what is said of bad ones (SPEC C1)."""

import os
from pathlib import Path

import pytest

from xclaw.agents.loader import load_agents
from xclaw.agents.settings import AgentSettings
from xclaw.contracts.agents import Agent, Limits
from xclaw.contracts.errors import UsageError
from xclaw.contracts.permissions import Rules


def write(folder: Path, front_matter: str, body: str = "Do it well.", name: str = "a.md") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{front_matter}\n---\n{body}\n", "utf-8")
    return path


def load(folder: Path, front_matter: str) -> tuple[Agent, tuple[str, ...]]:
    """The agent of one file, which names itself "mine", and the warnings."""
    write(folder, f"name: mine\ndescription: does it\n{front_matter}")
    registry, warnings = load_agents(AgentSettings((str(folder),)))
    agent = registry.get("mine")
    assert agent is not None
    return agent, warnings


def refusal(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_agents(AgentSettings((str(folder),)))
    return str(caught.value)


def test_a_file_with_every_key_becomes_an_agent(tmp_path: Path) -> None:
    agent, warnings = load(
        tmp_path,
        "tools: view_file, deliver\nmodel: [openai:gpt-5, ollama:qwen3:8b]\nmaxTurns: 7\ntimeout: 5m\n"
        "max_budget_usd: 0.5\nmax-tokens: 20000\npermissionMode: ask\nisolation: forked\nmemory: true",
    )
    assert agent == Agent(
        name="mine",
        description="does it",
        instructions="Do it well.",
        models=("openai:gpt-5", "ollama:qwen3:8b"),
        tools=("view_file", "deliver"),
        limits=Limits(max_turns=7, timeout_s=300.0, max_tokens=20_000, max_usd=0.5),
        isolation="forked",
        permission_mode="default",
        memory=True,
        source=str(tmp_path / "a.md"),
    )
    assert warnings == ()


@pytest.mark.parametrize("key", ["maxTurns", "max_turns", "max-turns", "MaxTurns", "MAX_TURNS"])
def test_keys_may_be_spelled_in_camel_snake_or_kebab_case(tmp_path: Path, key: str) -> None:
    agent, warnings = load(tmp_path, f"{key}: 3")
    assert agent.limits.max_turns == 3
    assert warnings == ()


def test_claude_tool_names_are_mapped_and_those_without_counterpart_warned_about(tmp_path: Path) -> None:
    agent, warnings = load(
        tmp_path, "tools: Read, Write, LS, Bash(git diff, git log), Grep, Edit, Glob, deliverr\ncolor: red"
    )
    assert agent.tools == ("view_file", "write_file", "list_dir", "shell", "search", "edit_file")
    assert [text.split(": ", 1)[1] for text in warnings] == [
        "the rule in 'Bash(git diff, git log)' has no effect here; read as 'Bash'",
        "the tool 'Glob' has no counterpart here and is left out",
        "the tool 'deliverr' is not known and is left out; did you mean 'deliver'?",
    ]
    assert all(text.startswith(f"{tmp_path / 'a.md'}:4: ") for text in warnings)


@pytest.mark.parametrize(
    ("front_matter", "tools"),
    [
        ("", None),
        ("tools:", None),
        ('tools: "*"', None),
        ("tools: [view_file, view_file]", ("view_file",)),
        ("tools: []", ()),
        ("disallowedTools: Write, deliver", ("view_file", "list_dir", "search", "edit_file")),
        ("tools: [Read, Bash]\ndisallowed_tools: shell", ("view_file",)),
        ('disallowedTools: "*"', ()),
    ],
)
def test_which_tools_an_agent_gets(tmp_path: Path, front_matter: str, tools: tuple[str, ...] | None) -> None:
    assert load(tmp_path, front_matter)[0].tools == tools


def test_an_agent_that_may_delegate_is_an_orchestrator(tmp_path: Path) -> None:
    assert load(tmp_path, "tools: Task, Read")[0].orchestrator
    assert load(tmp_path, "orchestrator: true")[0].orchestrator
    assert not load(tmp_path, "tools: Read")[0].orchestrator


@pytest.mark.parametrize("model", ["inherit", "sonnet", "[inherit]", "", "null"])
def test_a_model_that_names_no_provider_means_the_default_chain(tmp_path: Path, model: str) -> None:
    assert load(tmp_path, f"model: {model}")[0].models == ()


@pytest.mark.parametrize(
    ("written", "seconds"), [("90", 90.0), ("0.5", 0.5), ("90s", 90.0), ("2 min", 120.0), ("1h", 3600.0)]
)
def test_a_timeout_is_seconds_or_a_duration(tmp_path: Path, written: str, seconds: float) -> None:
    assert load(tmp_path, f"timeout: {written}")[0].limits.timeout_s == seconds


def test_unknown_keys_warn_with_what_was_probably_meant(tmp_path: Path) -> None:
    _, warnings = load(tmp_path, "descripton: x\nhooks:\n  PreToolUse:\n    - matcher: Bash\nzzz: 1")
    path = tmp_path / "a.md"
    assert warnings[0] == f"{path}:4: unknown key `descripton`; did you mean `description`?"
    assert warnings[1] == f"{path}:5: `hooks` has no effect here"
    assert warnings[2].startswith(f"{path}:8: unknown key `zzz`; known are name, description, tools")


def test_foreign_values_that_would_widen_rights_do_not(tmp_path: Path) -> None:
    """J1."""
    agent, warnings = load(tmp_path, "permissionMode: bypassPermissions\nisolation: worktree")
    assert (agent.permission_mode, agent.isolation, agent.worktree) == ("bubble", "local", True)
    assert len(warnings) == 1


@pytest.mark.parametrize(
    ("written", "isolation", "worktree"),
    [
        ("worktree", "local", True),
        ("Worktree", "local", True),
        ("forked", "forked", False),
        ("forked, worktree", "forked", True),
        ("[worktree, forked]", "forked", True),
        ("local", "local", False),
    ],
)
def test_a_tree_of_its_own_may_stand_with_a_kind(
    tmp_path: Path, written: str, isolation: str, *, worktree: bool
) -> None:
    """F4, L1."""
    agent, warnings = load(tmp_path, f"isolation: {written}")
    assert (agent.isolation, agent.worktree, warnings) == (isolation, worktree, ())


@pytest.mark.parametrize("written", ["worktree, elsewhere", "forked, local", "tree"])
def test_isolation_that_there_is_not_is_an_error(tmp_path: Path, written: str) -> None:
    with pytest.raises(UsageError, match="worktree"):
        load(tmp_path, f"isolation: {written}")


@pytest.mark.parametrize(
    ("written", "mode"),
    [
        ("default", "default"),
        ("acceptEdits", "accept-edits"),
        ("accept-edits", "accept-edits"),
        ("plan", "plan"),
        ("bubble", "bubble"),
        ("deny-all", "deny-all"),
        ("dontAsk", "deny-all"),
        ("ask", "default"),
        ("deny", "deny-all"),
    ],
)
def test_modes_of_other_tools_and_of_earlier_versions_are_read(
    tmp_path: Path, written: str, mode: str
) -> None:
    """J1."""
    agent, warnings = load(tmp_path, f"permissionMode: {written}")
    assert agent.permission_mode == mode
    assert warnings == ()


def test_a_file_has_rules_of_its_own(tmp_path: Path) -> None:
    """J1."""
    agent, warnings = load(
        tmp_path, 'allow: shell(git log *), view_file\nask: ["shell(git push *)"]\ndeny: shell(rm *)'
    )
    assert agent.rules == Rules(("shell(git log *)", "view_file"), ("shell(git push *)",), ("shell(rm *)",))
    assert warnings == ()


def test_a_description_with_a_colon_and_no_quotes_is_read_as_text(tmp_path: Path) -> None:
    write(tmp_path, "name: mine\ndescription: Use it when: it's late. Example: a: b")
    registry, warnings = load_agents(AgentSettings((str(tmp_path),)))
    assert registry.roster()["mine"] == "Use it when: it's late. Example: a: b"
    assert warnings == (
        f"{tmp_path / 'a.md'}:3: `description` has a colon in it and no quotes; read as plain text",
    )


def test_texts_with_braces_and_any_script_stay_as_they_are(tmp_path: Path) -> None:
    """R06."""
    body = 'Answer {"path": "..."} or {x!r:>{w}}.\n\n---\n\n{{input}} 中文 $& \\1'
    write(tmp_path, "name: 规划师 一号\ndescription: 'plans {0} {}'", body)
    agent = load_agents(AgentSettings((str(tmp_path),)))[0].get("规划师 一号")
    assert agent is not None
    assert (agent.description, agent.instructions) == ("plans {0} {}", body)


@pytest.mark.parametrize("line_ends", ["\n", "\r\n"])
def test_windows_line_ends_and_a_byte_order_mark_are_taken(tmp_path: Path, line_ends: str) -> None:
    text = line_ends.join(["\ufeff---", "name: mine", "description: does it", "---", "Do it.", ""])
    (tmp_path / "a.md").write_bytes(text.encode())
    assert load_agents(AgentSettings((str(tmp_path),)))[0].resolve("mine") == "mine"


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("", 1, "the front matter is missing"),
        ("Just a prompt.\n", 1, "the front matter is missing"),
        ("---\nname: a\ndescription: b\n", 3, "the front matter is not closed"),
        ("---\n---\nx", 1, "`name` is missing"),
        ("---\ndescription: b\n---\nx", 2, "`name` is missing"),
        ("---\nname: a\n---\nx", 2, "`description` is missing"),
        ("---\nname: ' '\ndescription: b\n---\nx", 2, "`name` is empty"),
        ("---\nname: 7\ndescription: b\n---\nx", 2, "`name` must be text"),
        ("---\nname: a\ndescription: [b]\n---\nx", 3, "`description` must be text"),
        ("---\nname: a\ndescription: b\n---\n\n", 3, "the instructions are missing"),
        ("---\nname: a\ndescription: b\ntools: {a: b}\n---\nx", 4, "`tools` must be names"),
        ("---\nname: a\ndescription: b\ntools: [1]\n---\nx", 4, "`tools` must be names"),
        ("---\nname: a\ndescription: b\n\nmaxTurns: many\n---\nx", 5, "`maxTurns` must be a whole number"),
        ("---\nname: a\ndescription: b\nmax-turns: 0\n---\nx", 4, "`max-turns` must be a whole number"),
        ("---\nname: a\ndescription: b\nmaxTurns: true\n---\nx", 4, "`maxTurns` must be a whole number"),
        ("---\nname: a\ndescription: b\nmax_tokens: 1.5\n---\nx", 4, "`max_tokens` must be a whole number"),
        (
            "---\nname: a\ndescription: b\nmax_budget_usd: -1\n---\nx",
            4,
            "`max_budget_usd` must be a number above 0",
        ),
        ("---\nname: a\ndescription: b\nmax_budget_usd: .inf\n---\nx", 4, "`max_budget_usd` "),
        ("---\nname: a\ndescription: b\ntimeout: soon\n---\nx", 4, "`timeout` must be seconds"),
        (
            "---\nname: a\ndescription: b\nisolation: cloud\n---\nx",
            4,
            "`isolation` must be one of local, forked",
        ),
        ("---\nname: a\ndescription: b\npermissionMode: yolo\n---\nx", 4, "`permissionMode` must be one of"),
        ("---\nname: a\ndescription: b\ndeny: shell(\n---\nx", 4, "`deny`: 'shell(' is no rule"),
        ("---\nname: a\ndescription: b\nmemory: maybe\n---\nx", 4, "`memory` must be true or false"),
        ("---\nname: a\ndescription: b\nmodel: a good one\n---\nx", 4, "`model` must be"),
        (
            "---\nname: a\ndescription: b\nmaxTurns: 1\nmax_turns: 2\n---\nx",
            5,
            "`max_turns` stands here again: line 4",
        ),
        ("---\nname: a\ndescription: 'b\n---\nx", 3, "not valid YAML"),
        ("---\nname: a\ntools: [b\ndescription: c\n---\nx", 4, "not valid YAML"),
        ("---\nname: a\n\tdescription: b\n---\nx", 3, "not valid YAML"),
        ("---\n- name\n---\nx", 2, "the front matter must be `key: value` lines"),
        ("---\nname: a\ndescription: b\n? [x]\n: y\n---\nx", 4, "a key must be a plain word"),
        ("---\nname: &n a\ndescription: *n\n---\nx", 3, "the alias `*n` is not allowed"),
        (
            "---\nname: a\ndescription: b\nx: " + "[" * 500 + "]" * 500 + "\n---\nx",
            4,
            "nested more than 8 deep",
        ),
        ("---\n" + "".join(f"k{i}: 1\n" for i in range(101)) + "---\nx", 2, "more than 100 keys"),
        ("---\nname: a\ndescription: \x01\n---\nx", 3, "not valid YAML"),
        ('---\nname: "a\\0b"\ndescription: c\n---\nx', 2, "has a control character in it"),
        (f"---\nname: {'n' * 300}\ndescription: c\n---\nx", 2, "is longer than 120 characters"),
    ],
)
def test_a_bad_file_is_named_with_its_line_and_the_reason(
    tmp_path: Path, text: str, line: int, reason: str
) -> None:
    """SPEC C1."""
    (tmp_path / "bad.md").write_text(text, "utf-8")
    message = refusal(tmp_path)
    assert message.startswith(f"{tmp_path / 'bad.md'}:{line}: ")
    assert reason in message
    assert len(message) < 600


def test_a_bomb_of_aliases_is_refused_before_it_unfolds(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 40)]
    write(tmp_path, "\n".join(lines))
    assert ":3: the alias `*a0` is not allowed" in refusal(tmp_path)


def test_an_object_tag_makes_no_object(tmp_path: Path) -> None:
    marker = tmp_path / "made"
    write(tmp_path, f"name: mine\ndescription: !!python/object/apply:os.mkdir ['{marker}']")
    assert "`description` must be text" in refusal(tmp_path)
    assert not marker.exists()


def test_a_file_that_is_not_utf_8_is_named_with_the_line(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes("---\nname: a\ndescription: 中文\n".encode("gb18030"))
    assert refusal(tmp_path) == f"{tmp_path / 'a.md'}:3: is not UTF-8 text; save it as UTF-8"


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "name: a\ndescription: b", "x" * 300_000)
    assert "is larger than 256000 bytes" in refusal(tmp_path)


def test_a_pipe_in_place_of_a_file_does_not_block(tmp_path: Path) -> None:
    """F10."""
    os.mkfifo(tmp_path / "a.md")
    assert "is not a regular file" in refusal(tmp_path)


def test_all_bad_files_are_named_at_once(tmp_path: Path) -> None:
    for number in range(12):
        (tmp_path / f"f{number:02}.md").write_text("no front matter", "utf-8")
    lines = refusal(tmp_path).splitlines()
    assert len(lines) == 11
    assert lines[-1] == "and 2 more"


def test_two_files_of_one_directory_with_one_name_are_refused(tmp_path: Path) -> None:
    write(tmp_path, "name: Mine\ndescription: b", name="one.md")
    write(tmp_path, "name: mine\ndescription: b", name="sub/two.md")
    assert refusal(tmp_path) == (
        f"{tmp_path / 'sub/two.md'}:1: the agent 'mine' is defined in {tmp_path / 'one.md'} too; rename one"
    )


def test_a_users_agent_replaces_a_built_in_one_and_a_later_directory_an_earlier_one(tmp_path: Path) -> None:
    write(tmp_path / "user", "name: Coder\ndescription: mine")
    write(tmp_path / "project", "name: coder\ndescription: ours")
    directories = (str(tmp_path / "user"), str(tmp_path / "project"), str(tmp_path / "nowhere"))
    registry, warnings = load_agents(AgentSettings(directories))
    assert registry.roster()["coder"] == "ours"
    assert warnings == (
        f"{tmp_path / 'user/a.md'}: the agent 'Coder' replaces the one from built-in",
        f"{tmp_path / 'project/a.md'}: the agent 'coder' replaces the one from {tmp_path / 'user/a.md'}",
    )


def test_agents_defined_in_python_come_last(tmp_path: Path) -> None:
    mine = Agent("coder", "from python", "Do it.", source="python")
    registry, warnings = load_agents(AgentSettings(), [mine])
    assert registry.get("coder") == mine
    assert warnings == ("python: the agent 'coder' replaces the one from built-in",)


def test_links_are_followed_and_loops_of_them_end(tmp_path: Path) -> None:
    agents = tmp_path / "agents"
    write(tmp_path / "elsewhere", "name: mine\ndescription: b")
    agents.mkdir()
    (agents / "linked").symlink_to(tmp_path / "elsewhere")
    (agents / "loop").symlink_to(agents)
    (tmp_path / "elsewhere" / "back").symlink_to(agents)
    assert load_agents(AgentSettings((str(agents),)))[0].resolve("mine") == "mine"
    (agents / "self.md").symlink_to(agents / "self.md")
    assert "self.md:1: cannot be read" in refusal(agents)


def test_files_that_are_no_agents_are_passed_over(tmp_path: Path) -> None:
    for name in ("README.md", "readme.md", "notes.txt", ".hidden.md", ".git/x.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("no front matter", "utf-8")
    assert load_agents(AgentSettings((str(tmp_path),)))[1] == ()


def test_a_file_in_place_of_a_directory_is_an_error(tmp_path: Path) -> None:
    path = write(tmp_path, "name: a\ndescription: b")
    with pytest.raises(UsageError, match="is not a directory"):
        load_agents(AgentSettings((str(path),)))


def test_too_many_files_are_an_error(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path, f"name: a{number}\ndescription: b", name=f"{number}.md")
    with pytest.raises(UsageError, match="more than 2 agent files"):
        load_agents(AgentSettings((str(tmp_path),), max_files=2))
