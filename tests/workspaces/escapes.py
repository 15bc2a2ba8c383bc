"""Ways to get at files outside, and the proof that none did: all uses of a workspace, in either mode, among
secrets that no use may show, list or change."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from workspaces.places import snapshot
from xclaw.contracts.errors import ToolFailed
from xclaw.tools.globs import parse_globs
from xclaw.tools.search_files import Walked, Wanted, batches
from xclaw.workspaces.local import LocalWorkspaces
from xclaw.workspaces.settings import WorkspaceMode, WorkspaceSettings
from xclaw.workspaces.workspace import LocalWorkspace

MARK = "own "
"""What every file inside begins with, and none outside."""
SECRET = "the-secret-content"
NAME = "s3cret-name"
"""In every directory outside, and in none inside."""
FOREIGN = frozenset({NAME, "hostname", "environ", "usr"})
"""Names that are outside only, also in /etc, /proc/self and /."""

Use = Callable[[str], list[str]]
"""Does something with a path; answers every text and every name that it was shown."""


class Escaped(AssertionError):
    """A use showed or changed what is outside."""


@dataclass
class Scene:
    """A workspace in `root`, with secrets all around."""

    root: Path
    mode: WorkspaceMode
    own: LocalWorkspace = field(init=False)
    before: dict[str, tuple[str, bytes]] = field(init=False)

    def __post_init__(self) -> None:
        settings = WorkspaceSettings(str(self.root / "ws"), mode=self.mode, durable=False)
        opened = LocalWorkspaces(settings)
        self.own = opened.open("coder", "task", "run-1")
        self.own.prepare()
        for agent, task, run in (("coder", "task-s3cret", "run-2"), ("writer", "task", "run-3")):
            opened.open(agent, task, run).write("a.txt", SECRET.encode())
        opened.open("writer", "other", "run-4").deliver("a.txt", SECRET.encode())
        (self.out / "a").mkdir(parents=True)
        for directory in (self.out, self.out / "a"):
            (directory / "a.txt").write_text(SECRET)
        for place in (self.home, self.delivery, self.out / "a" / "a.txt"):
            for directory in place.parents:
                if directory.is_relative_to(self.root):
                    (directory / NAME).touch()
        self.before = self._outside()

    @property
    def out(self) -> Path:
        return self.root / "out"

    @property
    def home(self) -> Path:
        return Path(self.own.private_dir)

    @property
    def delivery(self) -> Path:
        return Path(self.own.delivery_dir)

    def attempt(self, use: Use, path: str) -> bool:
        """Whether it was allowed. Raises `Escaped`, and whatever is no `ToolFailed`."""
        try:
            shown = use(path)
        except ToolFailed as refused:
            if SECRET in str(refused) or NAME in str(refused):
                raise Escaped(f"the refusal of {path!r} shows a secret: {refused}") from None
            return False
        if FOREIGN.intersection(shown) or any(SECRET in text for text in shown):
            raise Escaped(f"{path!r} showed {shown!r}"[:500])
        return True

    def check(self) -> None:
        """Raises `Escaped` when something outside was changed."""
        after = self._outside()
        changed = {path for path in {*after, *self.before} if after.get(path) != self.before.get(path)}
        if changed:
            raise Escaped(f"outside was changed: {sorted(changed)[:5]}")

    def _outside(self) -> dict[str, tuple[str, bytes]]:
        own = (f"{self.home}/", f"{self.delivery}/", str(self.root / "ws" / ".deliveries"))
        inputs = str(self.root / "ws" / ".inputs")
        found = snapshot(self.root)
        return {path: entry for path, entry in found.items() if not path.startswith((*own, inputs))}

    def uses(self) -> dict[str, Use]:
        return {
            "read": self._read,
            "list": lambda path: [item.name for item in self.own.list_directory(path)],
            "write": self._write,
            "edit": self._edit,
            "deliver": self._deliver,
            "open": self._open,
            "search": self._search,
        }

    def _read(self, path: str) -> list[str]:
        return [_inside(self.own.read(path).text)]

    def _write(self, path: str) -> list[str]:
        self.own.write(path, f"{MARK}written".encode())
        return []

    def _edit(self, path: str) -> list[str]:
        seen: list[str] = []

        def change(content: bytes) -> bytes:
            seen.append(_inside(content.decode("utf-8", "replace")))
            return f"{MARK}edited".encode()

        self.own.edit(path, change, 10_000)
        return seen

    def _deliver(self, path: str) -> list[str]:
        pointer = self.own.deliver(path, f"{MARK}delivered".encode())
        if not pointer.path.startswith(f"{self.delivery}/"):
            raise Escaped(f"{path!r} was delivered to {pointer.path}")
        return []

    def _open(self, path: str) -> list[str]:
        with self.own.opened(path) as opened:
            if opened.is_directory:
                with os.scandir(opened.descriptor) as entries:
                    return [entry.name for entry in entries]
            return [_inside(os.pread(opened.descriptor, 1_000, 0).decode("utf-8", "replace"))]

    def _search(self, path: str) -> list[str]:
        """All files that a search would be given, read as its engines read them."""
        shown: list[str] = []
        with self.own.opened(path) as opened:
            if opened.is_directory:
                for files in batches(opened.descriptor, Wanted(parse_globs("*")), Walked(lambda: None)):
                    shown += [name for file in files for name in file.path.split("/")]
                    shown += [_inside(text) for text in _texts(file.descriptor for file in files)]
        return shown


def _texts(descriptors: Iterator[int]) -> Iterator[str]:
    for descriptor in descriptors:
        yield os.pread(descriptor, 1_000, 0).decode("utf-8", "replace")


def _inside(text: str) -> str:
    """Raises `Escaped` for the text of a file that is not ours."""
    if text and not text.startswith(MARK):
        raise Escaped(f"a file outside was read: {text[:200]!r}")
    return text
