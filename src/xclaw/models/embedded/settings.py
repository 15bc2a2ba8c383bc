"""What the embedded model must be told."""

import os
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EmbeddedSettings:
    """Nothing is downloaded unless `download_allowed` says so."""

    cache_dir: str
    """Weights, wheels and the running server's address live in `models/` below it."""
    model_path: str | None = None
    """A GGUF file to use instead of fetching one. It is only read."""
    sha256: str | None = None
    """Of the file at `model_path`, when that is another model; refused without `model_path`."""
    download_allowed: bool = False
    context_tokens: int = 8192
    max_output_tokens: int = 1024
    threads: int | None = None
    """None: one core fewer than there are, so that the runtime keeps one."""
    python: str | None = None
    """The interpreter that runs the server; None: this one."""
    shared: bool = True
    """Use the server that another xclaw process on this machine has started, if there is one."""
    max_starts: int = 3
    """How often the server is started within `starts_window_s` before giving up."""
    starts_window_s: float = 600.0
    start_timeout_s: float = 120.0
    """How long loading may take; a cold disk needs most of it."""

    @property
    def thread_count(self) -> int:
        return self.threads if self.threads is not None else max(1, (os.cpu_count() or 1) - 1)
