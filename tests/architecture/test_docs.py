"""The documents say what the code does: rooms, commands, settings, events, errors, links, examples."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from typing import Any, cast, get_args

import click
import pytest
import typer

from ready_command import run_ready
from xclaw.agents.definition import KEYS
from xclaw.agents.loader import builtin_agents, load_agents
from xclaw.agents.settings import AgentSettings
from xclaw.cli.chat import COMMANDS
from xclaw.cli.main import app
from xclaw.contracts import errors
from xclaw.contracts.events import EVENT_TYPES
from xclaw.contracts.models import ModelProfile
from xclaw.contracts.results import Outcome
from xclaw.contracts.tool_names import COORDINATION_TOOLS, WORKER_TOOLS
from xclaw.models.catalog import ModelCatalog, key_names
from xclaw.models.providers import PROVIDERS
from xclaw.models.pydantic_ai import WIRES
from xclaw.settings import load_settings
from xclaw.settings.environment import KEY_VARIABLES, OTHER_VARIABLES, VARIABLES
from xclaw.settings.loading import HIDDEN, SECTIONS
from xclaw.settings.shape import shape_of
from xclaw.testing.script_files import load_script

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(ROOT.glob("*.md")), *sorted(DOCS.glob("*.md")), ROOT / "examples" / "README.md"]
READMES = ("README.md", "README.zh.md")
SET_ELSEWHERE = frozenset({"workspace.root", "workspace.path_rules", "store.path", "models.chain"})
"""Settings whose default depends on the machine or on other values; the page says on what."""
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def text_of(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def blocks(name: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text_of(name)) if found == language]


def section(text: str, heading: str) -> str:
    """From a heading to the next one of its level."""
    start = re.search(rf"^(#+) {re.escape(heading)}$", text, re.MULTILINE)
    assert start is not None, heading
    end = re.search(rf"^#{{1,{len(start[1])}}} ", text[start.end() :], re.MULTILINE)
    return text[start.end() : start.end() + end.start()] if end else text[start.end() :]


def commands() -> dict[str, click.Command]:
    return cast("dict[str, click.Command]", cast("Any", typer.main.get_command(app)).commands)


def test_the_rooms_of_the_architecture_are_the_folders() -> None:
    source = ROOT / "src" / "xclaw"
    there = {f"{path.name}/" for path in source.iterdir() if (path / "__init__.py").is_file()}
    there |= {path.name for path in source.glob("*.py") if path.name != "__main__.py"}
    rows = re.findall(r"^\| `([^`]+)` \|", section(text_of("ARCHITECTURE.md"), "Rooms"), re.MULTILINE)
    assert set(rows) == there
    assert len(rows) == len(set(rows))


def test_every_file_that_the_architecture_names_exists() -> None:
    named = re.findall(r"`([a-z_]+/[a-z_/]*\.(?:py|sql))`", text_of("ARCHITECTURE.md"))
    assert len(named) > 20
    assert [name for name in named if not (ROOT / "src" / "xclaw" / name).is_file()] == []


def test_every_command_and_flag_is_described() -> None:
    page = text_of("docs/cli.md")
    missing: list[str] = []
    for name, command in commands().items():
        own = section(page, name)
        if name in ("run", "chat"):
            own += section(page, "Options of work")
        for option in command.params:
            missing += [
                f"{name} {flag}"
                for flag in option.opts
                if flag.startswith("--")
                and flag != "--help"
                and not re.search(rf"(?<![\w-]){flag}(?![\w-])", own)
            ]
    assert missing == []
    assert set(re.findall(r"^\| \[`(\w+)`\]", page, re.MULTILINE)) == set(commands())


def test_every_command_of_the_chat_is_described() -> None:
    page = section(text_of("docs/cli.md"), "chat")
    assert [name for name in COMMANDS if f"`{name}`" not in page] == []


def test_every_event_is_described_with_its_fields() -> None:
    page = section(text_of("docs/cli.md"), "Output formats")
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \| [^|]+ \|$", page, re.MULTILINE))
    for kind, event in EVENT_TYPES.items():
        names = [item.name for item in fields(event) if item.name != "kind"]
        assert re.findall(r"`(\w+)`", rows[kind]) == names, kind


def test_every_outcome_and_error_class_is_described() -> None:
    page = text_of("docs/errors.md")
    classes = [
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    ]
    assert len(classes) > 10
    assert [name for name in (*classes, *get_args(Outcome)) if f"`{name}`" not in page] == []


def settings_rows() -> dict[str, str]:
    page = section(text_of("docs/configuration.md"), "Settings")
    return dict(re.findall(r"^\| `([^`]+)` \| (.*?) \| ", page, re.MULTILINE))


def documented(key: tuple[str, ...]) -> str:
    stand_ins = {"providers": "NAME", "prices": '"PROVIDER:MODEL"', "profiles": '"PROVIDER:MODEL"'}
    parts = [
        stand_ins[key[at - 1]] if part == "*" and at and key[at - 1] in stand_ins else part
        for at, part in enumerate(key)
    ]
    return ".".join(parts)


def test_every_setting_is_described_and_nothing_else() -> None:
    keys = {documented(key) for key in shape_of(SECTIONS, HIDDEN).leaves}
    keys -= {name for name in keys if name.startswith("models.profiles.")}
    profile = {item.name for item in fields(ModelProfile)} - {"scripted"}
    rows = set(settings_rows())
    tables = {"models.prices", "models.profiles"}
    assert {name for name in rows if "." in name} - tables == keys - tables
    assert {name for name in rows if "." not in name} == {
        name for name in profile if not name.endswith("per_million")
    }


def defaults() -> Iterator[tuple[str, object]]:
    """Every setting with a plain default."""

    def walk(prefix: str, settings: Any) -> Iterator[tuple[str, object]]:
        for item in cast("tuple[Field[object], ...]", fields(settings)):
            name = f"{prefix}.{item.name}"
            if is_dataclass(item.default):
                yield from walk(name, item.default)
            elif item.default is not MISSING and not isinstance(item.default, tuple):
                yield name, item.default

    for section_name, settings in SECTIONS.items():
        yield from walk(section_name, settings)


@pytest.mark.parametrize(("name", "default"), [*defaults()])
def test_the_default_that_is_described_is_the_default(name: str, default: object) -> None:
    if name in SET_ELSEWHERE:
        return
    row = settings_rows()[name]
    if default is None or default == "":
        assert not re.match(r"`[\d.]+`$", row), row
    elif isinstance(default, bool):
        assert row == f"`{str(default).lower()}`"
    elif isinstance(default, int | float):
        assert float(row.strip("`")) == default
    else:
        assert row == f"`{default}`"


def test_every_environment_variable_is_described() -> None:
    page = section(text_of("docs/configuration.md"), "Environment variables")
    keys = {variable for variables in KEY_VARIABLES.values() for variable in variables}
    named = {*VARIABLES, *OTHER_VARIABLES, *keys, *key_names().values(), "OPENAI_MODEL", "NO_COLOR"}
    assert sorted(name for name in named if f"`{name}`" not in page) == []


def test_every_provider_is_described() -> None:
    page = section(text_of("docs/models.md"), "Providers")
    assert [name for name in (*PROVIDERS, *WIRES, "local", "script") if f"`{name}`" not in page] == []


def test_every_key_tool_and_built_in_agent_is_described() -> None:
    page = text_of("docs/agents.md")
    tools = (*WORKER_TOOLS, *COORDINATION_TOOLS, "shell")
    names = (*dict.fromkeys(KEYS.values()), *tools, *builtin_agents().names)
    assert [name for name in names if f"`{name}`" not in page] == []


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    text = FENCE.sub("", page.read_text("utf-8"))
    broken: list[str] = []
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = (page.parent / name).resolve() if name else page
        if not file.exists() or (anchor and anchor not in anchors(file)):
            broken.append(target)
    assert broken == []


@pytest.mark.parametrize("name", [*READMES, "AGENTS.md", "docs/cli.md"])
def test_every_xclaw_command_in_a_code_block_exists(name: str) -> None:
    known = commands()
    for block in blocks(name, "bash"):
        for written in re.findall(r"(?:^|\s|&& )\.venv/bin/xclaw (.*)$", block, re.MULTILINE):
            words = shlex.split(written.split(" < ")[0], comments=True)
            command = known[words[0]]
            flags = {flag for option in command.params for flag in option.opts}
            assert [word for word in words[1:] if re.match(r"--?\w", word) and word not in flags] == []
            for word in words:
                if word.startswith("script:"):
                    assert (ROOT / word.removeprefix("script:")).is_file()


@pytest.mark.parametrize("name", READMES)
def test_the_first_commands_are_the_two_that_matter(name: str) -> None:
    setup, check = blocks(name, "bash")[:2]
    assert setup.startswith(
        "python3 -m venv .venv && .venv/bin/pip install '.[local]' && .venv/bin/xclaw run "
    )
    assert check == "bash scripts/check\n"
    assert (ROOT / "scripts" / "check").is_file()


def test_both_readmes_have_the_same_shape() -> None:
    english, chinese = (text_of(name) for name in READMES)
    shape = re.compile(r"^#+(?= )|^- |^```\w*|^!", re.MULTILINE)
    assert shape.findall(english) == shape.findall(chinese)
    link = re.compile(r"\]\(([^)#]+)[^)]*\)")
    assert sorted(set(link.findall(english)) - {"README.zh.md"}) == sorted(
        set(link.findall(chinese)) - {"README.md"}
    )


PYTHON_BLOCKS = [
    (name, number, body)
    for name in (*READMES, "docs/testing.md")
    for number, body in enumerate(blocks(name, "python"), 1)
]


@pytest.mark.parametrize(("name", "number", "body"), PYTHON_BLOCKS, ids=lambda part: str(part)[:20])
def test_every_python_block_runs(name: str, number: int, body: str, tmp_path: Path) -> None:
    if name in READMES:
        (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "home").mkdir()
    env = {**os.environ, "XCLAW_HOME": str(tmp_path / "home"), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", body],
        cwd=tmp_path,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, f"{name}, block {number}:\n{done.stderr}"


def test_the_example_files_in_the_documents_are_valid(tmp_path: Path) -> None:
    for number, body in enumerate(blocks("docs/agents.md", "markdown")):
        folder = tmp_path / f"agents{number}"
        folder.mkdir()
        (folder / "one.md").write_text(body, "utf-8")
        registry, warnings = load_agents(AgentSettings(directories=(str(folder),)))
        assert "namer" in registry.names
        assert warnings == ()
    for body in blocks("docs/models.md", "yaml"):
        (tmp_path / "script.yaml").write_text(body, "utf-8")
        assert load_script(tmp_path / "script.yaml")
    for body in blocks("docs/configuration.md", "toml"):
        (tmp_path / "xclaw.toml").write_text(body, "utf-8")
        env = {"HOME": str(tmp_path), "XCLAW_HOME": str(tmp_path / "home"), "DEEPSEEK_API_KEY": "k"}
        settings = load_settings(cwd=tmp_path, env=env)
        assert settings.warnings == ()
        ModelCatalog(settings.models)([*settings.models.chain[:1], "office:qwen3-32b"])


def test_the_fields_of_json_results_are_described(tmp_path: Path) -> None:
    page = text_of("docs/cli.md")
    env = {**os.environ, "XCLAW_HOME": str(tmp_path), "HOME": str(tmp_path), "PYTHONWARNINGS": "error"}
    script = ROOT / "examples" / "jwt" / "script.yaml"
    commands_and_sections = (
        (["run", "-m", f"script:{script}", "-o", "json", "JWT"], "Output formats"),
        (["trace", "--json", "--prompts"], "trace"),
        (["tasks", "--json"], "tasks"),
        (["tasks", "last", "--json"], "tasks"),
        (["agents", "coder", "--json"], "agents"),
        (["config", "path", "--json"], "config"),
        (["cancel", "last", "--json"], "cancel"),
    )
    for arguments, heading in commands_and_sections:
        done = run_ready(arguments, stdin=b"", directory=tmp_path, env=env, timeout_s=60)
        assert done.returncode == 0, done.stderr
        described = re.findall(r"\w+", section(page, heading))
        missing = [key for key in top_keys(json.loads(done.stdout)) if key not in described]
        assert missing == [], arguments


def top_keys(form: dict[str, object]) -> Iterator[str]:
    """The keys of an object and of the plain objects and lists of objects right below it."""
    for key, value in form.items():
        yield key
        below = cast("list[object]", value) if isinstance(value, list) else [value]
        if key not in ("summary_data", "steps"):
            for item in below:
                if isinstance(item, dict):
                    yield from cast("dict[str, object]", item)


def test_the_page_for_contributors_is_short() -> None:
    assert len(text_of("AGENTS.md").splitlines()) <= 150
