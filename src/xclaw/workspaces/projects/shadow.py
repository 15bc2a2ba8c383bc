"""The repository of xclaw's own that holds what workers see and make of one project.

It is bare, no one else writes its configuration, and it has nothing of the user's repository but contents of files.
Whoever changes it holds its lock, which a killed process gives back when the git that it called has ended too.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import tempfile
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.projects.checkout import Checkout
from xclaw.workspaces.projects.git import Git, GitFailed
from xclaw.workspaces.projects.reading import Found, blob_id

AUTHOR = "xclaw"
MAIL = "xclaw.invalid"
BRANCHES = "refs/heads/"
LIST_FILES = ("ls-tree", "-r", "-z", "--full-tree")
_CONFIG = (
    "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n\tlogallrefupdates = false\n"
)
_HEAD = "ref: refs/heads/none\n"

Files = Mapping[str, tuple[str, str]]
"""Mode and object id by path."""


@dataclass(frozen=True, slots=True)
class Note:
    """Who, when and what of a commit."""

    message: str
    author: str
    at: int
    """Unix time, seconds."""


class Shadow:
    """One project's repository. Methods block."""

    def __init__(self, directory: Path, git: Git) -> None:
        self.directory = directory
        self.git = replace(git, repository=str(directory / "repository.git"))

    @contextmanager
    def locked(self) -> Generator["Shadow"]:
        """The repository for whoever writes: alone, on this machine."""
        self.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self.directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            writer = Shadow(self.directory, replace(self.git, lock=lock))
            writer._make()
            yield writer
        finally:
            os.close(lock)

    def _make(self) -> None:
        """The repository, by hand: the few files that it is, so that no template is copied into it."""
        root = Path(self.git.repository)
        if (root / "HEAD").exists():
            self._drop_leftovers(root)
            return
        self.git.check_version()
        for name in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
            (root / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        (root / "config").write_text(_CONFIG)
        (root / "HEAD").write_text(_HEAD)

    def _drop_leftovers(self, root: Path) -> None:
        """What a git left that was killed, or found the disk full: nobody else writes here."""
        locks = (root / "packed-refs.lock", root / "HEAD.lock", *(root / "refs").rglob("*.lock"))
        for left in (*locks, *root.glob("fast_import_crash_*"), *root.glob("objects/pack/tmp_*")):
            left.unlink(missing_ok=True)

    def commit_of(self, name: str) -> str:
        """The commit that a branch, ref or id means; empty for none."""
        if name.startswith("-") or not name or not name.isprintable():
            return ""
        full = name if name.startswith("refs/") or _is_id(name) else f"{BRANCHES}{name}"
        code, said, _ = self.git.ended(
            "rev-parse", "--verify", "--quiet", "--end-of-options", f"{full}^{{commit}}"
        )
        return said.decode().strip() if code == 0 else ""

    def known(self, name: str) -> str:
        """As `commit_of`. Raises `ToolFailed` for none."""
        commit = self.commit_of(name)
        if not commit:
            raise ToolFailed(f"there is no branch {name[:100]!r} of this project")
        return commit

    def files(self, commit: str) -> dict[str, tuple[str, str]]:
        return files_in(self.git(*LIST_FILES, commit))

    def time_of(self, commit: str) -> int:
        """When it was committed; Unix time, seconds."""
        return int(self.git("show", "-s", "--format=%ct", commit).decode().strip())

    def with_objects_of(self, checkout: Checkout) -> "Shadow":
        """The same repository, with a git that finds the user's objects too."""
        return Shadow(self.directory, replace(self.git, also=(*self.git.also, checkout.objects)))

    def point(self, ref: str, commit: str) -> None:
        self.git("update-ref", ref, commit)

    def is_ancestor(self, older: str, newer: str) -> bool:
        return self.git.ended("merge-base", "--is-ancestor", older, newer)[0] == 0

    def commit_tree(self, tree: str, parents: Iterable[str], note: Note) -> str:
        """A commit whose id says nothing of when it was made twice."""
        arguments = [part for parent in parents for part in ("-p", parent)]
        said = self.git(
            "commit-tree",
            tree,
            *arguments,
            stdin=message_bytes(note.message),
            environment=who(note),
        )
        return said.decode().strip()


def files_in(listed: bytes) -> dict[str, tuple[str, str]]:
    """What git says of `LIST_FILES`."""
    found: dict[str, tuple[str, str]] = {}
    for line in listed.split(b"\0")[:-1]:
        about, _, path = line.partition(b"\t")
        mode, _, object_id = about.decode().split(" ")
        found[os.fsdecode(path)] = (mode, object_id)
    return found


def who(note: Note) -> dict[str, str]:
    name = person(note.author)
    date = f"@{note.at} +0000"
    return {
        "GIT_AUTHOR_NAME": name,
        "GIT_AUTHOR_EMAIL": mail(note.author),
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_NAME": AUTHOR,
        "GIT_COMMITTER_EMAIL": f"{AUTHOR}@{MAIL}",
        "GIT_COMMITTER_DATE": date,
    }


def person(name: str) -> str:
    """A name as a commit can hold it."""
    return re.sub(r"[<>\x00-\x1f\x7f]+", " ", name).strip(" .,:;\"'")[:100] or AUTHOR


def mail(name: str) -> str:
    plain = re.sub(r"[^a-z0-9._-]+", "-", name.casefold()).strip("-.")[:60]
    return f"{plain or hashlib.sha256(name.encode('utf-8', 'replace')).hexdigest()[:8]}@{MAIL}"


def message_bytes(message: str) -> bytes:
    plain = message.replace("\0", " ").strip() or "Changes"
    return plain.encode("utf-8", "replace")[:20_000] + b"\n"


def _is_id(name: str) -> bool:
    return re.fullmatch(r"[0-9a-f]{40}", name) is not None


class Writing:
    """A commit that is put together file by file, and made by a single git: whole or not at all."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        """`known`: ids of contents that the repository has."""
        self._known = set(known)
        self._stream: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._digest = hashlib.sha256()
        self.size = 0

    def add(self, found: Found) -> tuple[str, str]:
        """Answers its mode and object id."""
        object_id = blob_id(found.content)
        self._digest.update(
            b"%s %s %s\0" % (found.mode.encode(), object_id.encode(), os.fsencode(found.path))
        )
        self.size += len(found.content)
        if object_id in self._known:
            self.keep(found.path, found.mode, object_id)
            return found.mode, object_id
        self._stream.write(
            b"M %s inline %s\ndata %d\n" % (found.mode.encode(), _quoted(found.path), len(found.content))
        )
        self._stream.write(found.content)
        self._stream.write(b"\n")
        return found.mode, object_id

    def keep(self, path: str, mode: str, object_id: str) -> None:
        """A file that is there already."""
        self._stream.write(b"M %s %s %s\n" % (mode.encode(), object_id.encode(), _quoted(path)))

    @property
    def digest(self) -> str:
        """Of all that was added."""
        return self._digest.hexdigest()

    def commit(self, shadow: Shadow, ref: str, parent: str, note: Note) -> str:
        """Make it the newest commit of `ref`; answers its id. The shadow is locked. Raises `GitFailed`."""
        message = message_bytes(note.message)
        by = f"{person(note.author)} <{mail(note.author)}> {note.at} +0000"
        head = [
            f"commit {ref}".encode(),
            f"author {by}".encode("utf-8", "replace"),
            f"committer {AUTHOR} <{AUTHOR}@{MAIL}> {note.at} +0000".encode(),
            b"data %d" % len(message),
            message + (f"from {parent}\n".encode() if parent else b"") + b"deleteall",
        ]
        with tempfile.TemporaryFile() as whole:
            whole.write(b"feature done\n" + b"\n".join(head) + b"\n")
            self._stream.seek(0)
            while piece := self._stream.read(1 << 20):
                whole.write(piece)
            whole.write(b"\ndone\n")
            shadow.git("fast-import", "--quiet", "--date-format=raw", stdin=whole)
        commit = shadow.commit_of(ref)
        if not commit:
            raise GitFailed(f"git did not make the commit of {ref}")
        return commit

    def close(self) -> None:
        self._stream.close()


@contextlib.contextmanager
def writing(known: Iterable[str] = ()) -> Generator[Writing]:
    made = Writing(known)
    try:
        yield made
    finally:
        made.close()


def _quoted(path: str) -> bytes:
    raw = os.fsencode(path)
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
