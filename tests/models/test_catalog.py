"""Names to live models."""

import sys
from importlib.util import find_spec

import pytest
from wire_asking import KEY, REQUEST, run

from xclaw.contracts.errors import NoModel, UsageError
from xclaw.contracts.models import Model
from xclaw.models.catalog import ModelCatalog, key_names
from xclaw.models.settings import ModelsSettings, Price, ProviderSettings
from xclaw.testing.fake_provider import FakeProvider, Text
from xclaw.testing.recording_sink import RecordingSink


def catalog(**providers: ProviderSettings) -> ModelCatalog:
    return ModelCatalog(ModelsSettings(providers={n.replace("_", "-"): p for n, p in providers.items()}))


def test_nothing_to_run_on_names_the_three_ways_out() -> None:
    with pytest.raises(NoModel, match=r"(?s)OPENAI_API_KEY.*OPENAI_BASE_URL.*pip install 'xclaw\[local\]'"):
        catalog()(())


def test_a_bare_name_means_openai() -> None:
    assert catalog(openai=ProviderSettings(api_key=KEY))(["gpt-4o"]).name == "openai:gpt-4o"


def test_an_empty_chain_is_the_settings_own() -> None:
    settings = ModelsSettings(("ollama:a", "ollama:b"))
    assert ModelCatalog(settings)(()).name == "ollama:a"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nope:x", "known are anthropic.*openai.*xai"),
        ("qwen2.5:7b", "no provider 'qwen2.5'"),
        ("groq:llama", "GROQ_API_KEY"),
        ("gpt-4o", "OPENAI_API_KEY"),
        ("qwen:qwen-max", "DASHSCOPE_API_KEY"),
        ("anthropic:claude", "ANTHROPIC_API_KEY"),
        ("openai-compatible:x", "base_url"),
        ("ollama:", "names no model"),
        ("", "names no model"),
        (":", "names no model"),
    ],
)
def test_a_name_that_cannot_work_says_what_to_do(name: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        catalog()([name])


def test_a_blank_key_is_no_key() -> None:
    with pytest.raises(UsageError, match="OPENAI_API_KEY"):
        catalog(openai=ProviderSettings(api_key=" \n"))(["gpt-4o"])


def test_an_endpoint_of_ones_own_needs_no_key_and_no_entry_in_the_table() -> None:
    own = ProviderSettings("http://127.0.0.1:9/v1")
    assert catalog(openai=own)(["x"]).name == "openai:x"
    assert catalog(my_lab=own)(["my-lab:x"]).name == "my-lab:x"


@pytest.mark.skipif(find_spec("pydantic_ai") is not None, reason="xclaw[providers] is installed")
def test_a_missing_extra_names_the_pip_line() -> None:
    with pytest.raises(UsageError, match=r"pip install 'xclaw\[providers\]'"):
        catalog(anthropic=ProviderSettings(api_key=KEY))(["anthropic:claude"])


def test_one_model_serves_every_chain_that_names_it() -> None:
    async def main() -> None:
        made: list[str] = []

        def maker(name: str) -> Model:
            made.append(name)
            return catalog(openai=ProviderSettings("http://127.0.0.1:9/v1"))(["x"])

        models = ModelCatalog(ModelsSettings(), {"local": maker})
        models(["local:a"])
        models(["local:a", "ollama:b"])
        assert models(["local:a"]) is models(["local:a"])
        assert made == ["a"]
        models(["local"])
        assert made == ["a", ""]
        await models.close()

    run(main)


def test_a_chain_answers_with_cost_and_sends_the_key_and_headers() -> None:
    async def main() -> None:
        async with FakeProvider() as provider:
            settings = ModelsSettings(
                providers={
                    "openai": ProviderSettings(provider.url, f"{KEY}\n", {"X-Team": "a"}, max_concurrent=1)
                },
                prices={"openai:m": Price(1_000_000, 0)},
            )
            models = ModelCatalog(settings)
            provider.queue(Text("fine", usage=(10, 2)))
            reply = await models(["openai:m"]).reply(REQUEST, RecordingSink())
            await models.close()
            await models.close()
        assert reply.cost_usd == 10.0
        sent = provider.requests[0]
        assert sent.headers["Authorization"] == f"Bearer {KEY}"
        assert sent.headers["X-Team"] == "a"
        assert sent.body["model"] == "m"

    run(main)


def test_profiles_know_windows_and_prices_and_take_corrections() -> None:
    settings = ModelsSettings(
        providers={"openai": ProviderSettings(api_key=KEY)},
        profiles={"openai:gpt-4.1": {"max_output_tokens": 5, "worker_timeout_s": 1.5}},
    )
    profile = ModelCatalog(settings)(["gpt-4.1"]).profile
    assert (profile.context_tokens, profile.max_output_tokens, profile.worker_timeout_s) == (
        1_000_000,
        5,
        1.5,
    )
    assert profile.input_usd_per_million == pytest.approx(2.0)
    assert ModelCatalog(settings)(["ollama:x"]).profile.input_usd_per_million is None


@pytest.mark.parametrize(
    "correction",
    [{"nope": 1}, {"scripted": True}, {"parallel": 0}, {"native_tools": 1}, {"structured_output": "x"}],
)
def test_a_correction_that_is_none_is_refused(correction: dict[str, object]) -> None:
    settings = ModelsSettings(profiles={"ollama:x": correction})
    with pytest.raises(UsageError, match="ollama:x"):
        ModelCatalog(settings)(["ollama:x"])


def test_settings_do_not_show_keys() -> None:
    settings = ModelsSettings(providers={"openai": ProviderSettings(api_key=KEY, headers={"X-Key": KEY})})
    assert KEY not in repr(settings)
    assert KEY not in repr(ModelCatalog(settings)(["openai:x"]))


def test_key_names_cover_aliases_and_other_wires() -> None:
    names = key_names()
    assert (names["openai"], names["qwen"], names["anthropic"]) == (
        "OPENAI_API_KEY",
        "DASHSCOPE_API_KEY",
        "ANTHROPIC_API_KEY",
    )
    assert "ollama" not in names
    assert "pydantic_ai" not in sys.modules or find_spec("pydantic_ai")
