"""What `.gitignore` files leave out, read without git."""

from collections.abc import Sequence
from dataclasses import dataclass

from xclaw.tools.globs import Glob, parse_glob

MAX_IGNORE_BYTES = 100_000
_MAX_RULES = 500


@dataclass(frozen=True, slots=True)
class _Rule:
    glob: Glob
    depth: int
    """How many directories deep, below the one that is searched, its file lies."""
    keeps: bool
    directories_only: bool


@dataclass(frozen=True, slots=True)
class Ignored:
    """The rules that hold in one directory; the last that matches decides."""

    rules: tuple[_Rule, ...] = ()

    def below(self, content: bytes, depth: int) -> "Ignored":
        """With those of a `.gitignore` that lies `depth` directories deep."""
        lines = content[:MAX_IGNORE_BYTES].decode("utf-8", "replace").splitlines()
        found = [rule for line in lines if (rule := _rule(line, depth)) is not None]
        return Ignored((*self.rules, *found)[-_MAX_RULES:])

    def leaves_out(self, parts: Sequence[str], *, is_directory: bool) -> bool:
        for rule in reversed(self.rules):
            if (is_directory or not rule.directories_only) and rule.glob.matches(parts[rule.depth :]):
                return not rule.keeps
        return False


def _rule(line: str, depth: int) -> _Rule | None:
    text = line.rstrip()
    if not text or text.startswith("#"):
        return None
    keeps = text.startswith("!")
    text = text.removeprefix("!")
    if "//" in text:
        return None  # no path holds that, and git takes one slash off either end at most
    return _Rule(parse_glob(text), depth, keeps, text.endswith("/")) if text.strip("/") else None
