"""Lets tests share what stands beside them."""

import signal
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# A busy machine is no fault of an example: how long one takes is not asserted anywhere.
settings.register_profile("xclaw", deadline=None)
settings.load_profile("xclaw")

# Whoever starts the tests in the background may have had signals ignored; the commands that the tests
# start and interrupt inherit that.
if threading.current_thread() is threading.main_thread():
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGHUP, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)

pytest_plugins = ("untested_sandboxes",)

LONGEST = ("crash", "sandbox", "cli")
"""Directories whose tests take longest each: begun first, so that no process is left alone with one at the end."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A hook of pytest. Within a directory the order stays."""
    place = {name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path.parent.name, len(place)))
