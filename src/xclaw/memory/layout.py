"""Where whose memory is (SPEC I2). The owner's is at the root, every other user's in a place of its own.

memory/team-memory/*.md                       shared by the owner's agents
memory/agent-{id}/MEMORY.md                   one agent's
memory/agent-{id}/session-transcript.log
memory/users/{user}/…                         the same again for each other user
"""

import hashlib
import re
import unicodedata
from dataclasses import dataclass
from pathlib import Path

from xclaw.contracts.errors import UsageError
from xclaw.contracts.users import OWNER

TEAM_DIRECTORY = "team-memory"
TEAM_FILE = "shared-findings.md"
"""What agents add to; the other files of the team are written by people, and recalled all the same."""
AGENT_FILE = "MEMORY.md"
TRANSCRIPT = "session-transcript.log"
LOCK = ".lock"
MAX_TEAM_FILES = 200

_PLAIN = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")
_RESERVED = re.compile(r"con|prn|aux|nul|(?:com|lpt)[0-9]")
_MARK = "+"
_SLUG_CHARACTERS = 24
_HASH_CHARACTERS = 16


def folder_of(name: str) -> str:
    """A directory name for a name of any kind: one name, one directory, whatever the file system folds.

    Plain lower-case names stay as they are; every other one gets a part of its hash.
    """
    if _PLAIN.fullmatch(name) and not _RESERVED.fullmatch(name):
        return name
    if not name or any(unicodedata.category(character) == "Cc" for character in name):
        raise UsageError(f"the name {name[:100]!r} is empty or holds a control character; use another")
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARACTERS]
    return f"{_slug(name)}{_MARK}{digest}"


def _slug(name: str) -> str:
    folded = unicodedata.normalize("NFKC", name[:200]).casefold()
    kept = "".join(
        character if character.isalnum() and unicodedata.normalize("NFD", character) == character else "-"
        for character in folded
    )
    return re.sub("-+", "-", kept)[:_SLUG_CHARACTERS].strip("-") or "x"


@dataclass(frozen=True, slots=True)
class UserPlaces:
    """The memory of one user."""

    root: Path

    def agent_directory(self, agent: str) -> Path:
        return self.root / f"agent-{folder_of(agent)}"

    def agent_file(self, agent: str) -> Path:
        return self.agent_directory(agent) / AGENT_FILE

    def team_file(self) -> Path:
        return self.root / TEAM_DIRECTORY / TEAM_FILE

    def team_files(self) -> list[Path]:
        """What agents add to is always among them, however many others there are."""
        own = self.team_file()
        others = sorted(path for path in own.parent.glob("[!.]*.md") if path != own)
        return [*([own] if own.exists() else []), *others][:MAX_TEAM_FILES]

    def seen_by(self, agent: str) -> list[Path]:
        """The files an agent recalls from; those that are there."""
        own = self.agent_file(agent)
        return [*([own] if own.exists() else []), *self.team_files()]

    def is_bare(self, agent: str) -> bool:
        """Whether there is nothing that an agent could recall from: two looks at the disk."""
        return not (self.root / TEAM_DIRECTORY).exists() and not self.agent_file(agent).exists()

    def files(self) -> list[Path]:
        """Every memory file of the user."""
        return [*sorted(self.root.glob(f"agent-*/{AGENT_FILE}")), *self.team_files()]

    @property
    def index(self) -> Path:
        return self.root / ".index" / "recall.db"

    @property
    def knowledge(self) -> Path:
        return self.root / "knowledge" / "documents.db"


def places_of(root: str, user: str) -> UserPlaces:
    """Raises `UsageError` for a user whose name can be none."""
    base = Path(root)
    return UserPlaces(base if user == OWNER else base / "users" / folder_of(user))
