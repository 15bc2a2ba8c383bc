"""Where workspaces live and how much a file of one may hold."""

import os
from dataclasses import dataclass
from typing import Literal

WorkspaceMode = Literal["host", "full"]
PathRules = Literal["posix", "windows"]


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    root: str
    """The directory that holds `agents/` and `shared/`; made on first use."""
    mode: WorkspaceMode = "host"
    """"full": deliver takes a bare file name only."""
    max_file_bytes: int = 64_000_000
    """The largest file that may be written or delivered."""
    max_read_bytes: int = 1_000_000
    """The largest slice one read answers, whatever it asked for."""
    max_entries: int = 10_000
    """How many names of one directory are listed."""
    durable: bool = True
    """Files survive a power cut, which costs some milliseconds each; a crash they survive anyway."""
    path_rules: PathRules = "windows" if os.name == "nt" else "posix"
    """Which path forms are understood; reserved names and streams are refused under "windows"."""
