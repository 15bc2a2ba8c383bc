"""Runs checks and attacks as whoever starts it, and prints a line of JSON for each: `python3 unprivileged.py`.

A process of its own, and standard library only: it is started as a user who reaches neither the interpreter
nor the packages that the tests run with.
"""

import asyncio
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext

from sandbox import hidden_attacks, limit_attacks
from sandbox.hostile_probe import CASES
from sandbox.hostile_scene import hostile_scene
from sandbox.opening import BACKENDS, opener
from xclaw.testing.sandbox_conformance import ENDING_CHECKS, SHARING_CHECKS, check_name
from xclaw.testing.sandbox_harness import POLICY, SandboxCheck


def told(name: str, work: Callable[[], object]) -> None:
    try:
        work()
        result = ""
    except Exception:  # noqa: BLE001 - whatever it is, it is the result
        result = traceback.format_exc()
    sys.stdout.write(json.dumps({"name": name, "failure": result, "uid": os.getuid()}) + "\n")
    sys.stdout.flush()


def attacks() -> Iterator[SandboxCheck]:
    """Those on what root bounds in another way."""
    for attack in limit_attacks.ATTACKS:
        if check_name(attack).startswith(
            ("memory", "segments", "disk_in_closed", "fork_bomb_of", "processor")
        ):
            yield attack
    yield from hidden_attacks.ATTACKS


def main() -> None:
    backend = BACKENDS["bubblewrap"]
    with asyncio.Runner() as runner, ExitStack() as stack:
        opened = opener(backend)(POLICY)
        shared = runner.run(opened.__aenter__())
        stack.callback(lambda: runner.run(opened.__aexit__(None, None, None)))
        for check in SHARING_CHECKS:
            told(
                check_name(check), lambda check=check: runner.run(check(lambda _policy: nullcontext(shared)))
            )
    for check in (*ENDING_CHECKS, *attacks()):
        told(check_name(check), lambda check=check: asyncio.run(check(opener(backend))))
    with hostile_scene(backend) as scene:
        for name in CASES:
            told(name, lambda name=name: scene.repel(name))


if __name__ == "__main__":
    main()
