"""A user's repository on the disk, and what xclaw makes of it: for tests."""

import hashlib
import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from xclaw.workspaces.projects.projects import LocalProjects
from xclaw.workspaces.projects.settings import ProjectSettings

USER = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_AUTHOR_NAME": "User",
    "GIT_AUTHOR_EMAIL": "user@example.invalid",
    "GIT_COMMITTER_NAME": "User",
    "GIT_COMMITTER_EMAIL": "user@example.invalid",
}
NUMBERS = "".join(f"{number}\n" for number in range(1, 31))


class UserRepository:
    """What a user has. `git` is theirs, with their configuration."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self.git("init", "-q", "-b", "main")

    def git(self, *arguments: str, stdin: str = "") -> str:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.directory,
            env=USER,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, (arguments, done.stdout, done.stderr)
        return done.stdout

    def write(self, files: Mapping[str, str | bytes]) -> None:
        for path, content in files.items():
            place = self.directory / path
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content.encode() if isinstance(content, str) else content)

    def commit(self, message: str, files: Mapping[str, str | bytes] | None = None) -> str:
        self.write(files or {})
        self.git("add", "-A")
        self.git("commit", "-q", "-m", message)
        return self.git("rev-parse", "HEAD").strip()

    def fingerprint(self) -> dict[str, str]:
        """HEAD, the index and all files of the working directory, by hash. Not objects and branches."""
        git = self.directory / ".git"
        places = [git / "HEAD", git / "index", git / "config", git / "packed-refs", git / "refs/heads/main"]
        places += [path for path in self.directory.rglob("*") if git not in path.parents and path != git]
        return {str(path.relative_to(self.directory)): _hashed(path) for path in places if path.is_file()}


def projects(root: Path, **settings: object) -> LocalProjects:
    return LocalProjects(ProjectSettings(str(root / "workspace"), durable=False, **settings))  # pyright: ignore[reportArgumentType] - tests name what they set


def names(directory: str | Path) -> set[str]:
    top = Path(directory)
    return {str(path.relative_to(top)) for path in top.rglob("*") if path.is_symlink() or not path.is_dir()}


def _hashed(path: Path) -> str:
    status = path.lstat()
    content = os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    return f"{status.st_mode:o} {hashlib.sha256(content).hexdigest()}"
