"""Ending a run together with everything below it."""

import asyncio

from xclaw.contracts.results import Result
from xclaw.contracts.spawn import Child
from xclaw.runtime.tree import Tree


async def cancel_with_all_below(tree: Tree, child: Child, reason: str) -> Result:
    """End a run and every run below it at once. A parent that ends its children one after the other, as they
    do theirs, takes as long as all of them together.

    Parents are told first: none goes on with the result of a child that was told before it. Cancelling the
    wait stops nothing.
    """
    below = [
        node.child
        for node in tree.below(child.run_id)
        if node.child is not None and node.child is not child and node.result is None
    ]
    loop = asyncio.get_running_loop()
    ending = [loop.create_task(each.cancel(reason)) for each in (child, *below)]
    await asyncio.wait(ending)
    return ending[0].result()
