"""The user's own repository, as far as it is looked at: by reading its files, never by running git in it."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from xclaw.workspaces.projects.reading import opened_tree

MAX_REF_BYTES = 16_000_000
MAX_INDEX_BYTES = 400_000_000
_ID = re.compile(r"[0-9a-f]{40}")


@dataclass(frozen=True, slots=True)
class Checkout:
    """A working directory with its repository."""

    directory: str
    """The top of the working directory."""
    own: str
    """What belongs to this working directory: HEAD and the index."""
    common: str
    """What it shares with others: objects, branches."""

    def read(self, name: str, limit: int = MAX_REF_BYTES, *, common: bool = False) -> bytes | None:
        return _read(self.common if common else self.own, name, limit)

    def head(self) -> str:
        """The commit that is checked out; empty before the first."""
        said = (self.read("HEAD", 4096) or b"").decode("utf-8", "replace").strip()
        return self.ref(_named(said)) if _named(said) else _id(said)

    def ref(self, name: str, depth: int = 0) -> str:
        """The commit that a ref is at; empty for none."""
        if not name.startswith("refs/") or ".." in name or depth > 4:
            return ""
        loose = (self.read(name, 4096, common=True) or b"").decode("utf-8", "replace").strip()
        if _named(loose):
            return self.ref(_named(loose), depth + 1)
        return _id(loose) or self.packed().get(name, "")

    def packed(self) -> dict[str, str]:
        lines = (self.read("packed-refs", common=True) or b"").decode("utf-8", "surrogateescape").splitlines()
        pairs = (line.split(" ", 1) for line in lines if not line.startswith(("#", "^")) and " " in line)
        return {name: commit for commit, name in pairs if _id(commit)}

    def has_part(self, ref: str) -> bool:
        """A packed ref has the name of a directory that `ref` would lie in."""
        packed = self.packed()
        return any(str(above) in packed for above in PurePosixPath(ref).parents)

    def has_below(self, ref: str) -> bool:
        """A packed ref lies in a directory of the name of `ref`."""
        return any(name.startswith(f"{ref}/") for name in self.packed())

    def checked_out(self) -> set[str]:
        """The branches that some working directory of the repository is on."""
        heads = [self.read("HEAD", 4096), self.read("HEAD", 4096, common=True)]
        worktrees = Path(self.common, "worktrees")
        if worktrees.is_dir() and not worktrees.is_symlink():
            heads += [_read(str(each), "HEAD", 4096) for each in sorted(worktrees.iterdir())[:1_000]]
        texts = [(head or b"").decode("utf-8", "replace").strip() for head in heads]
        return {_named(text) for text in texts} - {""}

    @property
    def objects(self) -> tuple[str, str]:
        """What has a git on our repository find its objects, too: a variable of the environment."""
        path = f"{self.common}/objects".replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return "GIT_ALTERNATE_OBJECT_DIRECTORIES", f'"{path}"'

    @property
    def is_plain(self) -> bool:
        """Its branches are files, its ids are the usual ones."""
        return not self._says(r"(objectformat\s*=\s*sha256|refstorage\s*=\s*reftable)")

    @property
    def has_modes(self) -> bool:
        """Its disk tells files that may be run from others."""
        return not self._says(r"filemode\s*=\s*(false|no|off|0)\s*$")

    def _says(self, setting: str) -> bool:
        config = (self.read("config", 1_000_000, common=True) or b"").decode("utf-8", "replace").casefold()
        return re.search(rf"^\s*{setting}", config, re.MULTILINE) is not None


def find_checkout(directory: str) -> tuple[Checkout | None, str]:
    """The checkout at `directory`, and why there is none although it looks like one."""
    git = os.path.join(directory, ".git")  # noqa: PTH118
    try:
        status = os.lstat(git)
    except OSError:
        return None, ""
    if stat.S_ISDIR(status.st_mode):
        if not is_repository(git):
            return None, "its .git is no repository, so it is treated as a folder"
        checkout = Checkout(directory, git, git)
    elif stat.S_ISREG(status.st_mode):
        linked = _linked(directory, git)
        if linked is None:
            return (
                None,
                "its .git leads to a repository that does not know of it, so it is treated as a folder",
            )
        checkout = linked
    else:
        return None, "its .git is a link, so it is treated as a folder"
    if not checkout.is_plain:
        return None, "its repository has a format that xclaw does not write, so it is treated as a folder"
    return checkout, ""


def top_of(directory: str) -> str:
    """The working directory that `directory` is inside of, of the same owner; itself if there is none."""
    owner = Path(directory).stat().st_uid
    for place in (Path(directory), *Path(directory).parents):
        try:
            status = os.lstat(place / ".git")
        except OSError:
            continue
        if place == Path(directory):
            return directory
        mine = status.st_uid in (owner, os.geteuid()) and place.stat().st_uid in (owner, os.geteuid())
        return str(place) if mine and find_checkout(str(place))[0] is not None else directory
    return directory


def is_inside_git(directory: str) -> bool:
    """It is part of a repository's own files, or of a bare one; a working directory may lie in one."""
    for place in (Path(directory), *Path(directory).parents):
        if os.path.lexists(place / ".git"):
            return False
        if is_repository(str(place)):
            return True
    return False


def _linked(directory: str, git: str) -> Checkout | None:
    """A working directory that was added to a repository: each of the two has to name the other."""
    text = (_read(directory, ".git", 4096) or b"").decode("utf-8", "surrogateescape").strip()
    if not text.startswith("gitdir: "):
        return None
    own = os.path.normpath(os.path.join(directory, text[8:].strip()))  # noqa: PTH118
    back = (_read(own, "gitdir", 4096) or b"").decode("utf-8", "surrogateescape").strip()
    common = (_read(own, "commondir", 4096) or b"").decode("utf-8", "surrogateescape").strip()
    if not back or not common or os.path.realpath(back) != os.path.realpath(git):
        return None
    shared = os.path.normpath(os.path.join(own, common))  # noqa: PTH118
    return Checkout(directory, own, shared) if is_repository(shared) else None


def is_repository(git: str) -> bool:
    """It looks like what a `.git` is, or a bare one."""
    return all(
        os.path.isdir(place) and not os.path.islink(place)  # noqa: PTH112, PTH114
        for place in (git, f"{git}/objects", f"{git}/refs")
    ) and (os.path.isfile(head := f"{git}/HEAD") and not os.path.islink(head))  # noqa: PTH113, PTH114


def _read(directory: str, name: str, limit: int) -> bytes | None:
    """A regular file of a repository; None for none, and for one that is larger."""
    try:
        with opened_tree(directory, limit) as tree:
            content = tree.read(name, limit + 1)
    except OSError:
        return None
    return content if content is not None and len(content) <= limit else None


def _named(text: str) -> str:
    """The ref that another one is a name for; empty for none."""
    return text[4:].strip() if text.startswith("ref:") else ""


def _id(text: str) -> str:
    return text if _ID.fullmatch(text) else ""
