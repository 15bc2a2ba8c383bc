"""What may be read of a user's project, and how much of it."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ProjectSettings:
    root: str
    """The directory that holds `projects/`, the repositories of xclaw's own; made on first use."""
    directory: str = ""
    """The user's project that runs work on, unless told otherwise; empty: none."""
    deny: tuple[str, ...] = ()
    """Patterns of names and paths that no worker sees, beside those that are always denied."""
    allow: tuple[str, ...] = ()
    """Patterns of names and paths that workers see although they are denied otherwise."""
    keep: bool = False
    """Private trees stay when their run has ended."""
    max_files: int = 50_000
    max_file_bytes: int = 20_000_000
    """A larger file is left out, and that is noted."""
    max_bytes: int = 1_000_000_000
    """Of all files together."""
    git: str = "git"
    """The program; 2.38 or later."""
    git_timeout_s: float = 300.0
    """Of one call of it."""
    ignore_file: str = ""
    """The user's own list of names that git ignores everywhere; empty: none."""
    durable: bool = True
    """Commits survive a power cut too."""
