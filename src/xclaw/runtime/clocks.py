"""A run's time, which stands still while a person decides."""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from xclaw.runtime.tree import Node


@contextmanager
def stopped_clocks(node: Node) -> Generator[None]:
    """Stop the time-outs of a run and of everybody above it, who wait for it or could be asked too.

    What runs beside it keeps its own time. Afterwards each has as long as it had left.
    """
    line: list[Node] = []
    above: Node | None = node
    while above is not None:
        line.append(above)
        above = above.parent
    for each in line:
        _stop(each)
    try:
        yield
    finally:
        for each in line:
            _go_on(each)


@contextmanager
def stopped_clock(node: Node) -> Generator[None]:
    """Stop the time-out of one run, which can do nothing until others have."""
    _stop(node)
    try:
        yield
    finally:
        _go_on(node)


def deadline_of(node: Node) -> float | None:
    """When a run has to end, as it stands now: a clock that is stopped puts it off."""
    if node.deadline is None or not node.waits_for_people:
        return node.deadline
    return node.deadline + asyncio.get_running_loop().time() - node.stopped_at


def _stop(node: Node) -> None:
    node.waits_for_people += 1
    if node.waits_for_people == 1:
        node.stopped_at = asyncio.get_running_loop().time()
        _move(node, None)


def _go_on(node: Node) -> None:
    node.waits_for_people -= 1
    if node.waits_for_people == 0:
        if node.deadline is not None:
            node.deadline += asyncio.get_running_loop().time() - node.stopped_at
        _move(node, node.deadline)


def _move(node: Node, deadline: float | None) -> None:
    if node.moved is not None:
        node.moved(deadline)
    # A time-out that has struck already cannot be moved, and ends the run.
    if node.timer is not None and not node.timer.expired():
        node.timer.reschedule(deadline)
