"""Puts the sources together: what a flag, the environment, a file or a default says of each setting."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, cast

from xclaw.agents.settings import AgentSettings
from xclaw.contracts.errors import UsageError
from xclaw.gateway.routing.settings import RouterSettings
from xclaw.gateway.settings import GatewaySettings
from xclaw.memory.settings import MemorySettings
from xclaw.models.embedded.settings import EmbeddedSettings
from xclaw.models.settings import ModelsSettings
from xclaw.patterns.coordinator.settings import CoordinatorSettings
from xclaw.patterns.workflows.settings import WorkflowSettings
from xclaw.runtime.permissions import PermissionSettings
from xclaw.runtime.settings import RuntimeSettings
from xclaw.sandbox.settings import SandboxSettings
from xclaw.settings.environment import default_chain, known_variables, misspelt_variables
from xclaw.settings.project_trust import ADDED, trusted
from xclaw.settings.shape import Key, Shape, dotted, entry_type, field_hints, shape_of
from xclaw.settings.sources import USER_FILE, Setting, environment_settings, project_file, read_toml
from xclaw.settings.values import absolute, converted, redacted
from xclaw.store.settings import StoreSettings
from xclaw.tools.web_settings import WebSettings
from xclaw.traces.settings import TracesSettings
from xclaw.workspaces.projects.settings import ProjectSettings
from xclaw.workspaces.settings import WorkspaceSettings

SECTIONS: dict[str, type] = {
    "workspace": WorkspaceSettings,
    "sandbox": SandboxSettings,
    "project": ProjectSettings,
    "store": StoreSettings,
    "models": ModelsSettings,
    "embedded": EmbeddedSettings,
    "memory": MemorySettings,
    "agents": AgentSettings,
    "runtime": RuntimeSettings,
    "coordinator": CoordinatorSettings,
    "workflow": WorkflowSettings,
    "web": WebSettings,
    "permissions": PermissionSettings,
    "traces": TracesSettings,
    "gateway": GatewaySettings,
    "router": RouterSettings,
}
HIDDEN: frozenset[Key] = frozenset(
    {
        ("agents", "script_directories"),
        ("agents", "known_tools"),
        ("agents", "default_tools"),
        ("project", "root"),
    }
)
MODE: Key = ("workspace", "mode")
PROVIDERS: Key = ("models", "providers")
ALIASES: dict[Key, Key] = {("model",): ("models", "chain")}
GATEWAY_FILES = {"token_file": "gateway-token", "users_file": "tokens.json", "state_file": "gateway.json"}
"""In the home."""
AGENT_DIRECTORIES = (".claude/agents", ".agents/agents", ".xclaw/agents")
"""In the project; a later one wins, and all win over the user's own."""


@dataclass(frozen=True, slots=True)
class Overrides:
    """What flags say. None: the flag was not given."""

    models: tuple[str, ...] | None = None
    workspace: str | None = None
    budget_usd: float | None = None
    budget_tokens: int | None = None
    timeout_s: float | None = None
    worker_timeout_s: float | None = None
    dialect: str | None = None
    allow_shell: bool | None = None
    coordinator: bool | None = None
    mode: str | None = None
    sandbox: str | None = None
    project: str | None = None
    """Implies the mode "full"."""
    host: str | None = None
    port: int | None = None


FLAGS: dict[str, tuple[str, Key]] = {
    "models": ("--model", ("models", "chain")),
    "workspace": ("--workspace", ("workspace", "root")),
    "budget_usd": ("--budget-usd", ("runtime", "budget_usd")),
    "budget_tokens": ("--budget-tokens", ("runtime", "budget_tokens")),
    "timeout_s": ("--timeout", ("runtime", "timeout_s")),
    "worker_timeout_s": ("--worker-timeout", ("runtime", "worker_timeout_s")),
    "dialect": ("--dialect", ("runtime", "dialect")),
    "allow_shell": ("--allow-shell", ("runtime", "allow_shell")),
    "coordinator": ("--coordinator", ("coordinator", "mode")),
    "mode": ("--mode", MODE),
    "sandbox": ("--sandbox", ("sandbox", "backend")),
    "project": ("--project", ("project", "directory")),
    "host": ("--host", ("gateway", "host")),
    "port": ("--port", ("gateway", "port")),
}


@dataclass(frozen=True, slots=True)
class Explained:
    """One value and where it came from; secrets are already replaced."""

    key: str
    value: object
    source: str


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that xclaw was told. `repr` shows no secrets."""

    home: Path
    workspace: WorkspaceSettings
    sandbox: SandboxSettings
    project: ProjectSettings
    store: StoreSettings
    models: ModelsSettings
    embedded: EmbeddedSettings
    memory: MemorySettings
    agents: AgentSettings
    runtime: RuntimeSettings
    coordinator: CoordinatorSettings
    workflow: WorkflowSettings
    web: WebSettings
    permissions: PermissionSettings
    traces: TracesSettings
    gateway: GatewaySettings
    router: RouterSettings
    files: tuple[Path, ...] = ()
    """The files that were read, the strongest first."""
    warnings: tuple[str, ...] = ()
    """What was ignored in them, and why."""
    sources: Mapping[Key, str] = field(default_factory=dict[Key, str], repr=False)

    def explain(self) -> list[Explained]:
        """Each value with where it came from, in a stable order, keys redacted. Of providers, only what
        is set."""
        rows = [Explained("home", str(self.home), self.sources.get(("home",), "default"))]
        for section in SECTIONS:
            rows.extend(_explained((section,), getattr(self, section), self.sources))
        return rows


def load_settings(*, cwd: Path, env: Mapping[str, str], overrides: Overrides | None = None) -> Settings:
    """Read everything once. Nothing is created; a file that is not there is no error.

    Raises:
        UsageError: a file is no TOML, or a value has the wrong type; names the file, the key and what
            was expected.
    """
    shape = _shape()
    home = absolute(env.get("XCLAW_HOME", "").strip() or "~/.xclaw", cwd, env)
    warnings = misspelt_variables(env)
    files: list[Path] = []
    user: list[Setting] = []
    project: list[Setting] = []
    user_file, project_toml = home / USER_FILE, project_file(cwd)
    if user_file.is_file():
        user = read_toml(user_file, shape, warnings)
        files.append(user_file)
    if project_toml is not None:
        project = read_toml(project_toml, shape, warnings)
        files.insert(0, project_toml)
    outside = environment_settings(env, known_variables(env), cwd)
    project = trusted(project, [*user, *outside], warnings)
    given = _strongest([*user, *project, *outside, *_flags(overrides or Overrides(), cwd)])
    sources = {key: setting.source for key, setting in given.items()}
    values = {key: converted(setting, shape.hint(key) or object, env) for key, setting in given.items()}
    _fill_defaults(values, sources, home, _project_root(cwd, project_toml), env)
    if env.get("XCLAW_HOME", "").strip():
        sources[("home",)] = "XCLAW_HOME"
    built = {name: _built((name,), settings, values, sources) for name, settings in SECTIONS.items()}
    return Settings(
        home=home, files=tuple(files), warnings=tuple(warnings), sources=sources, **cast("Any", built)
    )


def front_agent(settings: Settings) -> str:
    """Who answers what is addressed to nobody."""
    return "coordinator" if settings.coordinator.mode else "orchestrator"


def _project_root(cwd: Path, project_toml: Path | None) -> Path:
    """Where a project's agents are: beside its `xclaw.toml`, else at the top of its repository."""
    if project_toml is not None:
        return project_toml.parent
    return next((directory for directory in (cwd, *cwd.parents) if (directory / ".git").exists()), cwd)


def _shape() -> Shape:
    shape = shape_of(SECTIONS, HIDDEN)
    aliases = {alias: shape.hint(key) or object for alias, key in ALIASES.items()}
    return Shape({**shape.leaves, **aliases}, shape.tables)


def _strongest(settings: Iterable[Setting]) -> dict[Key, Setting]:
    """The last setting of each key; of lists that are added to, all of them."""
    found: dict[Key, Setting] = {}
    for setting in settings:
        key = ALIASES.get(setting.key, setting.key)
        found[key] = _joined(found[key], setting) if key in ADDED and key in found else setting
    return found


def _joined(first: Setting, second: Setting) -> Setting:
    """One setting of two lists. What is no list stays as it is, for the error that it deserves."""
    values = [item for each in (first, second) for item in _items(each.value)]
    return replace(second, value=values, source=f"{first.source}, {second.source}")


def _items(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _flags(overrides: Overrides, cwd: Path) -> list[Setting]:
    """Raises `UsageError` for flags that contradict one another."""
    values = {name: cast("object", getattr(overrides, name)) for name in FLAGS}
    found = [
        Setting(key, values[name], flag, cwd)
        for name, (flag, key) in FLAGS.items()
        if values[name] is not None
    ]
    if overrides.sandbox is None:
        return found
    if overrides.mode == "host":
        raise UsageError("--mode host has no sandbox, and --sandbox asks for one: leave one of them out")
    return [*found, Setting(MODE, "full", "--sandbox", cwd)]


def _fill_defaults(
    values: dict[Key, object],
    sources: dict[Key, str],
    home: Path,
    project: Path,
    env: Mapping[str, str],
) -> None:
    """The defaults that depend on other values."""
    root = cast("str", values.setdefault(("workspace", "root"), str(home / "workspace")))
    values.setdefault(("store", "path"), str(Path(root) / "xclaw.db"))
    values.setdefault(("embedded", "cache_dir"), str(home / "cache"))
    values.setdefault(("sandbox", "image_dir"), str(home / "cache" / "sandbox"))
    values[("project", "root")] = root
    values.setdefault(("project", "ignore_file"), _global_ignores(home, env))
    values.setdefault(("memory", "root"), str(home / "memory"))
    values.setdefault(("memory", "scratchpads"), str(Path(root) / "scratchpads"))
    for name, file in GATEWAY_FILES.items():
        values.setdefault(("gateway", name), str(home / file))
    values.setdefault(("agents", "script_directories"), (str(home / "agents"),))
    values.setdefault(
        ("agents", "directories"),
        (str(home / "agents"), *(str(project / name) for name in AGENT_DIRECTORIES)),
    )
    if not values.get(("models", "chain")):
        values[("models", "chain")], sources[("models", "chain")] = default_chain(env)


def _global_ignores(home: Path, env: Mapping[str, str]) -> str:
    """Where git looks for names that a user wants ignored everywhere."""
    folder = env.get("XDG_CONFIG_HOME", "").strip() or "~/.config"
    return str(absolute(folder, home, env) / "git" / "ignore")


def _built(key: Key, hint: object, values: Mapping[Key, object], sources: Mapping[Key, str]) -> object:
    """The value at `key`: as given, or put together from what was given below it."""
    if key in values:
        return values[key]
    entry = entry_type(hint)
    if entry is not None:
        names = dict.fromkeys(known[len(key)] for known in values if known[: len(key)] == key)
        return {name: _built((*key, name), entry, values, sources) for name in names}
    arguments: dict[str, object] = {}
    for name, inner in field_hints(cast("type", hint)).items():
        inner_key = (*key, name)
        if any(known[: len(inner_key)] == inner_key for known in values):
            arguments[name] = _built(inner_key, inner, values, sources)
    missing = [
        item.name for item in fields(cast("Any", hint)) if _is_required(item) and item.name not in arguments
    ]
    if missing:
        near = next((source for known, source in sources.items() if known[: len(key)] == key), "settings")
        raise UsageError(f"{near}: `{dotted((*key, missing[0]))}` is missing. Add it.")
    return cast("Any", hint)(**arguments)


def _is_required(item: object) -> bool:
    described = cast("Any", item)
    return described.default is MISSING and described.default_factory is MISSING


def _explained(key: Key, value: object, sources: Mapping[Key, str]) -> list[Explained]:
    if key in HIDDEN:
        return []
    if is_dataclass(value):
        inner = [((*key, item.name), cast("object", getattr(value, item.name))) for item in fields(value)]
    elif isinstance(value, Mapping) and value and key not in sources:
        table = cast("Mapping[str, object]", value)
        inner = [((*key, name), item) for name, item in table.items()]
    else:
        if key[:2] == PROVIDERS and not value:
            return []
        return [Explained(dotted(key), redacted(key, cast("object", value)), sources.get(key, "default"))]
    return [row for inner_key, item in inner for row in _explained(inner_key, item, sources)]
