"""Waits for processes that are nobody's children."""

import os
import select
from collections.abc import Iterable
from contextlib import suppress

POLL_MS = 100


def await_one(alive: Iterable[int]) -> None:
    """Until one of them has ended, without taking the processor from it."""
    poll = select.poll()
    descriptors: list[int] = []
    for pid in alive:
        with suppress(ProcessLookupError):
            descriptors.append(os.pidfd_open(pid))
            poll.register(descriptors[-1], select.POLLIN)
    try:
        if descriptors:
            poll.poll(POLL_MS)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
