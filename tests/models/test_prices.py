"""What calls cost."""

import genai_prices
import pytest

from xclaw.contracts.usage import Usage
from xclaw.models.prices import PriceBook
from xclaw.models.settings import Price

BOOK = PriceBook(
    {"openai:gpt-4o": Price(1, 2, 0.5), "own-model": Price(3, 4)},
    {"openai": "openai", "deepseek": "deepseek"},
)


def test_the_users_price_comes_first_and_cached_tokens_have_their_own() -> None:
    assert BOOK.cost_usd("openai:gpt-4o", Usage(1_000_000, 1_000_000, 500_000)) == 2.75
    assert BOOK.cost_usd("vllm:own-model", Usage(1_000_000, 0, 500_000)) == 3.0


@pytest.mark.parametrize("model", ["openai:no-such-model", "vllm:llama", "openai:", ":", "deepseek:x y", "x"])
def test_an_unknown_price_is_none_and_never_0(model: str) -> None:
    assert BOOK.cost_usd(model, Usage(10, 10)) is None


def test_models_on_this_machine_and_scripts_are_free() -> None:
    assert BOOK.cost_usd("local:x", Usage(10, 10)) == 0.0
    assert BOOK.cost_usd("script:/tmp/x.yaml", Usage(10, 10)) == 0.0


@pytest.mark.parametrize("name", ["gpt-5.2", "gpt-5.4", "gpt-4o-mini", "o3"])
@pytest.mark.parametrize("usage", [Usage(1000, 500, 200), Usage(400_000, 500, 100_000), Usage(5, 0)])
def test_listed_prices_are_those_of_the_list(name: str, usage: Usage) -> None:
    """Tiers by the size of the request included."""
    counts = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cached_tokens,
    )
    listed = float(genai_prices.calc_price(counts, name, provider_id="openai").total_price)
    assert BOOK.cost_usd(f"openai:{name}", usage) == pytest.approx(listed)
