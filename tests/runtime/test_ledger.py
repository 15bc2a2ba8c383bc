"""The account of a tree (SPEC K4)."""

import pytest

from xclaw.contracts.errors import LimitReached
from xclaw.contracts.models import ModelProfile
from xclaw.contracts.usage import Spend, Usage, spend_of_call
from xclaw.runtime.ledger import TreeLedger

PRICED = ModelProfile(max_output_tokens=1_000, input_usd_per_million=1.0, output_usd_per_million=10.0)


def used(tokens_in: int, tokens_out: int, usd: float | None = 0.0) -> Spend:
    return spend_of_call(Usage(tokens_in, tokens_out), usd)


def test_a_ledger_without_bounds_holds_nothing_back() -> None:
    reservation = TreeLedger().reserve(10_000_000, PRICED)
    assert reservation.max_output_tokens is None


def test_a_call_is_refused_before_it_is_made_when_the_tokens_are_used_up() -> None:
    root = TreeLedger(max_tokens=1_000)
    root.charge(used(900, 90))
    with pytest.raises(LimitReached, match="1000 tokens") as refused:
        root.reserve(50, PRICED)
    assert refused.value.limit == "tokens"


def test_the_output_of_a_call_is_bounded_by_what_is_left() -> None:
    root = TreeLedger(max_tokens=1_000)
    reservation = root.reserve(400, PRICED)
    assert reservation.max_output_tokens == 600


def test_parallel_reservations_cannot_spend_the_same_tokens_twice() -> None:
    root = TreeLedger(max_tokens=1_500)
    first, second = TreeLedger(root), TreeLedger(root)
    held = first.reserve(400, PRICED)
    assert held.tokens == 1_400
    with pytest.raises(LimitReached):
        second.reserve(400, PRICED)
    first.settle(held, used(400, 100))
    assert second.reserve(400, PRICED).max_output_tokens == 600


def test_a_childs_spending_counts_in_every_account_above_it() -> None:
    root = TreeLedger(max_tokens=10_000)
    child = TreeLedger(root)
    grandchild = TreeLedger(child)
    grandchild.settle(grandchild.reserve(100, PRICED), used(100, 1))
    child.charge(used(21, 9))
    root.charge(used(20, 10))
    assert [ledger.spent.usage.total_tokens for ledger in (grandchild, child, root)] == [101, 131, 161]
    assert root.spent.calls == 3


def test_a_childs_own_bound_is_tighter_than_the_trees() -> None:
    root = TreeLedger(max_tokens=100_000)
    child = TreeLedger(root, max_tokens=100)
    with pytest.raises(LimitReached, match="100 tokens"):
        child.reserve(90, PRICED)
    assert root.reserve(90, PRICED).max_output_tokens == 1_000


def test_money_bounds_the_output_and_then_refuses() -> None:
    root = TreeLedger(max_usd=0.001)
    assert root.reserve(100, PRICED).max_output_tokens == 90
    root.charge(used(1, 1, 0.001))
    with pytest.raises(LimitReached, match="used up"):
        root.reserve(100, PRICED)


def test_a_money_budget_with_an_unknown_price_is_refused_with_what_to_do() -> None:
    with pytest.raises(LimitReached, match=r"models\.prices"):
        TreeLedger(max_usd=1.0).reserve(100, ModelProfile())


def test_a_free_model_fits_any_money_budget() -> None:
    free = ModelProfile(max_output_tokens=50, input_usd_per_million=0.0, output_usd_per_million=0.0)
    assert TreeLedger(max_usd=0.01).reserve(10**9, free).max_output_tokens == 50


def test_an_unknown_price_makes_the_total_unknown_and_never_zero() -> None:
    root = TreeLedger()
    root.charge(used(10, 5, 0.5))
    root.charge(used(10, 5, None))
    assert root.spent.cost_usd is None
    assert root.spent.known_usd == 0.5


def test_what_is_left_is_told_in_words() -> None:
    root = TreeLedger(max_tokens=1_000)
    root.charge(used(100, 0))
    assert TreeLedger(root).left() == "900 tokens"
    assert TreeLedger().left() == ""


def test_the_calls_of_a_tree_are_bounded_over_all_its_runs() -> None:
    root = TreeLedger(max_calls=2)
    first, second = TreeLedger(root), TreeLedger(root)
    held = first.reserve(1, PRICED)
    second.settle(second.reserve(1, PRICED), used(1, 1))
    with pytest.raises(LimitReached, match="2 model calls") as refused:
        second.reserve(1, PRICED)
    assert refused.value.limit == "calls"
    first.settle(held, used(1, 1))
    assert root.spent.calls == 2
