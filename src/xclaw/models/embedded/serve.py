"""The child process that holds the embedded model: `python -m xclaw.models.embedded.serve MODEL`.

A process of its own keeps 2 GB and busy threads out of the runtime, and a native crash costs one
request. It prints one line of JSON on stdout when it can answer: `{"url": …, "key": …}`. It ends at
end-of-file on stdin, so it never outlives its parent, even after `kill -9`.
"""

import argparse
import contextlib
import ctypes
import importlib
import json
import os
import secrets
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Protocol, cast

PROMPT_CACHE_MIB = 256
"""Host memory for prompts of other roles. llama.cpp's own default is 8 GiB, too much for a laptop."""

REPETITION = {
    "dry_multiplier": 0.8,
    "dry_base": 1.75,
    "dry_allowed_length": 16,
    "dry_penalty_last_n": 96,
}
"""Ends sentences that go round in circles, which greedy decoding of a small model falls into. Only long
and recent repeats count (tokens), so that code and copied text stay as they are."""

_PR_SET_PDEATHSIG = 1
_QUIET = 2
"""llama.cpp's verbosity: warnings and errors. A line for each request would fill the disk."""


class _Server(Protocol):
    @property
    def listening_address(self) -> str: ...


def die_with_parent(parent: int) -> threading.Thread:
    """End this process when process `parent` ends; the thread runs as long as that does.

    The kernel does it on Linux, however busy the native code is; end-of-file on stdin everywhere.
    """
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it ended before this process could ask to be told
        os._exit(1)
    watcher = threading.Thread(target=_exit_at_end_of_input, daemon=True)
    watcher.start()
    return watcher


def _exit_at_end_of_input() -> None:
    while os.read(0, 4096):
        pass
    # The library's threads cannot be joined while a request runs; there is nothing to save.
    os._exit(0)


def start(model: str, *, context_tokens: int, threads: int, key: str) -> _Server:
    """Load the model and listen on a free port of 127.0.0.1. Returns when it can answer."""
    # Imported by name: it is an extra, and only this process may carry it.
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = model
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.api_keys = [key]
    params.ui = False
    params.endpoint_slots = False
    params.cache_ram_mib = PROMPT_CACHE_MIB
    params.verbosity = _QUIET
    for name, value in REPETITION.items():
        setattr(params.sampling, name, value)
    return cast("_Server", llama.Server(params))


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until stdin ends."""
    parser = argparse.ArgumentParser(prog="xclaw.models.embedded.serve")
    parser.add_argument("model")
    parser.add_argument("--context", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parent", type=int, required=True, help="the process to end with")
    options = parser.parse_args(arguments)
    watcher = die_with_parent(options.parent)
    key = secrets.token_urlsafe(24)
    server = start(options.model, context_tokens=options.context, threads=options.threads, key=key)
    sys.stdout.write(json.dumps({"url": server.listening_address, "key": key}) + "\n")
    sys.stdout.flush()
    watcher.join()
    return 0


if __name__ == "__main__":
    sys.exit(main())
