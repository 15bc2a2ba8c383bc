"""`xclaw doctor`: what works, what does not, and what to do about it. Spends nothing."""

import asyncio
import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.doctor_models import Finding, model_findings
from xclaw.cli.doctor_sandboxes import sandbox_findings
from xclaw.cli.failures import DONE, FAILED, reason_of
from xclaw.cli.text import printable
from xclaw.contracts.errors import XclawError

if TYPE_CHECKING:
    from xclaw.settings import Settings

LEAST_PYTHON = (3, 11)
LEAST_FREE_BYTES = 200_000_000


def check(workspace: str | None, *, as_json: bool) -> int:
    """Print all findings; answers 1 if there is a problem."""
    from xclaw.cli.opening import settings_of_workspace

    settings = settings_of_workspace(workspace)
    findings = [*_system(), *_settings(settings), *_storage(settings), *asyncio.run(_asked(settings))]
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"findings": findings, "ok": not _problems(findings)})
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{finding.level:8} {finding.name:{width}}  {printable(finding.text)}")
    return FAILED if _problems(findings) else DONE


async def _asked(settings: "Settings") -> list[Finding]:
    """What has to be tried to be known."""
    return [*await sandbox_findings(settings), *await model_findings(settings)]


def _problems(findings: list[Finding]) -> bool:
    return any(finding.level == "problem" for finding in findings)


def _system() -> Iterator[Finding]:
    version = platform.python_version()
    good = sys.version_info >= LEAST_PYTHON
    yield Finding("python", "ok" if good else "problem", f"{version} at {sys.executable}")
    yield Finding("sqlite", "ok", sqlite3.sqlite_version)


def _settings(settings: "Settings") -> Iterator[Finding]:
    files = ", ".join(str(path) for path in settings.files) or "no file; defaults and environment"
    yield Finding("settings", "ok", files)
    for warning in settings.warnings:
        yield Finding("settings", "note", warning)
    yield _shell(settings)
    yield _tried("agents", lambda: _agents(settings))
    yield _git(settings)


def _shell(settings: "Settings") -> Finding:
    if settings.workspace.mode == "full" and settings.sandbox.backend != "host":
        return Finding("shell", "ok", "every command of an agent runs in a sandbox")
    rules = [rule for rule in settings.permissions.allow if rule.startswith(("shell", "Bash", "*"))]
    if settings.runtime.allow_shell or "shell" in rules or "*" in rules:
        return Finding("shell", "note", "agents may run commands on this machine unasked, without a sandbox")
    unasked = f"; unasked: {', '.join(rules)}" if rules else ""
    return Finding("shell", "ok", f"a person is asked before a command runs{unasked}")


def _git(settings: "Settings") -> Finding:
    from xclaw.workspaces.projects.git import Git, GitFailed, GitSettings

    project = settings.project
    try:
        version = Git(GitSettings(project.git, project.git_timeout_s), "/").check_version()
    except GitFailed as failure:
        return Finding("git", "problem" if project.directory else "note", str(failure))
    return Finding("git", "ok", f"{version}, for work on a project")


def _agents(settings: "Settings") -> str:
    from xclaw.agents.loader import load_agents

    registry, warnings = load_agents(settings.agents)
    return "; ".join([f"{len(registry)} agents", *warnings])


def _storage(settings: "Settings") -> Iterator[Finding]:
    root = Path(settings.workspace.root)
    yield _tried("workspace", lambda: _writable(root))
    yield _tried("database", lambda: _database(Path(settings.store.path)))
    existing = next(path for path in (root, *root.parents) if path.exists())
    free = shutil.disk_usage(existing).free
    enough = free >= LEAST_FREE_BYTES
    yield Finding("disk", "ok" if enough else "problem", f"{free / 1e9:.1f} GB free at {existing}")


def _writable(directory: Path) -> str:
    directory.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=directory):
        return f"{directory} can be written"


def _database(path: Path) -> str:
    from xclaw.store.database import refuse_unusable

    if not path.exists():
        return f"{path} will be made by the first run"
    refuse_unusable(path)
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=5)
    try:
        (answer,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    finally:
        connection.close()
    if answer != "ok":
        raise sqlite3.DatabaseError(f"{path} is damaged: {answer}. Move it away; a new one is made.")
    return f"{path} is sound"


def _tried(name: str, look: Callable[[], str]) -> Finding:
    try:
        return Finding(name, "ok", look())
    except (OSError, sqlite3.Error, XclawError) as error:
        return Finding(
            name, "problem", reason_of(error) if isinstance(error, OSError | XclawError) else str(error)
        )
