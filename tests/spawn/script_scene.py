"""Users' scripts as agents of a scene."""

from collections.abc import Sequence
from pathlib import Path

from forked_scene import forked

from xclaw.contracts.agents import Agent


def script(home: Path, body: str, *arguments: str, name: str = "mine", tools: Sequence[str] = ()) -> Agent:
    """An agent that is the program `body`."""
    path = home / f"{name}.py"
    path.write_text(f"import os, sys, time\nimport xclaw.script as xclaw\n{body}\n")
    return forked(name, *tools, script=(str(path), *arguments))
