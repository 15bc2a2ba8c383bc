"""The collector's thresholds: raised, never lowered, never switched on."""

import gc
from collections.abc import Iterator

import pytest

from xclaw.runtime.collector import MIDDLE, YOUNG, collect_less_often


@pytest.fixture(autouse=True)
def thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    yield
    gc.set_threshold(*before)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((700, 10, 10), (YOUNG, MIDDLE, 10)),
        ((YOUNG * 5, 1, 2), (YOUNG * 5, 1, 2)),
        ((0, 10, 10), (0, 10, 10)),
    ],
)
def test_what_somebody_chose_stays(before: tuple[int, int, int], after: tuple[int, int, int]) -> None:
    gc.set_threshold(*before)
    collect_less_often()
    assert gc.get_threshold() == after
