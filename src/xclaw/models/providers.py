"""Providers that speak the chat-completions wire, as data."""

from dataclasses import dataclass

from xclaw.contracts.models import ModelProfile
from xclaw.models.openai.request import WireHabits

OPENAI_COMPATIBLE = "openai-compatible"


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider as it is out of the box; settings override the address and add the key."""

    name: str
    base_url: str | None
    """None: it has to be set."""
    key_name: str
    """The environment variable that people keep its key in; "" for a server without keys."""
    profile: ModelProfile = ModelProfile()
    price_list: str | None = None
    """What the public price list calls it."""
    new_output_limit: bool = False
    """It wants `max_completion_tokens`, not `max_tokens`."""
    call_id_length: int = 64

    def habits(self) -> WireHabits:
        return WireHabits(
            output_limit="max_completion_tokens" if self.new_output_limit else "max_tokens",
            call_id_length=self.call_id_length,
        )


_SCHEMA = ModelProfile(structured_output="with_tools")
_PLAIN = ModelProfile()
_OWN_MACHINE = ModelProfile(context_tokens=32_768, worker_timeout_s=300.0)

_PROVIDERS = (
    Provider(
        "openai",
        "https://api.openai.com/v1",
        "OPENAI_API_KEY",
        _SCHEMA,
        price_list="openai",
        new_output_limit=True,
    ),
    Provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", _PLAIN, price_list="deepseek"),
    Provider("moonshot", "https://api.moonshot.ai/v1", "MOONSHOT_API_KEY", _PLAIN, price_list="moonshotai"),
    Provider(
        "dashscope",
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        "DASHSCOPE_API_KEY",
        _PLAIN,
    ),
    Provider(
        "openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", _PLAIN, price_list="openrouter"
    ),
    Provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", _PLAIN, price_list="groq"),
    Provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", _PLAIN, price_list="together"),
    Provider(
        "mistral",
        "https://api.mistral.ai/v1",
        "MISTRAL_API_KEY",
        _SCHEMA,
        price_list="mistral",
        call_id_length=9,
    ),
    Provider("xai", "https://api.x.ai/v1", "XAI_API_KEY", _SCHEMA, price_list="x-ai"),
    Provider("ollama", "http://localhost:11434/v1", "", _OWN_MACHINE),
    Provider("vllm", "http://localhost:8000/v1", "", _OWN_MACHINE),
    Provider("lmstudio", "http://localhost:1234/v1", "", _OWN_MACHINE),
    Provider("llamacpp", "http://localhost:8080/v1", "", _OWN_MACHINE),
    Provider(OPENAI_COMPATIBLE, None, "", _PLAIN),
)
PROVIDERS = {provider.name: provider for provider in _PROVIDERS}
ALIASES = {"qwen": "dashscope", "moonshotai": "moonshot", "kimi": "moonshot", "grok": "xai", "x-ai": "xai"}

CONTEXT_TOKENS = (
    ("openai:gpt-4.1", 1_000_000),
    ("openai:gpt-5", 400_000),
    ("openai:o1", 200_000),
    ("openai:o3", 200_000),
    ("openai:o4", 200_000),
    ("openai:gpt-4o", 128_000),
    ("openai:gpt-4-turbo", 128_000),
    ("openai:gpt-4", 8_192),
    ("openai:gpt-3.5", 16_385),
    ("moonshot:kimi-k2", 256_000),
    ("dashscope:qwen-long", 1_000_000),
    ("xai:grok-4", 256_000),
)
"""Windows by the beginning of `provider:model`; the first that fits counts, else the provider's."""

SEEING = (
    "openai:gpt-4o",
    "openai:gpt-4.1",
    "openai:gpt-4-turbo",
    "openai:gpt-5",
    "openai:o4",
    "openai-chat:gpt-4o",
    "openai-chat:gpt-4.1",
    "openai-chat:gpt-5",
    "openai-responses:gpt-4o",
    "openai-responses:gpt-4.1",
    "openai-responses:gpt-5",
    "anthropic:claude-",
    "google:gemini-",
    "gemini:gemini-",
    "bedrock:anthropic.claude-",
    "bedrock:us.anthropic.claude-",
    "dashscope:qwen-vl",
    "dashscope:qwen2.5-vl",
    "dashscope:qwen3-vl",
    "mistral:pixtral",
    "mistral:mistral-medium",
    "mistral:mistral-small",
    "xai:grok-4",
    "openrouter:openai/gpt-4o",
    "openrouter:openai/gpt-4.1",
    "openrouter:openai/gpt-5",
    "openrouter:anthropic/claude-",
    "openrouter:google/gemini-",
)
"""Models that can be shown pictures, by the beginning of `provider:model`; of others, the profile says so."""
