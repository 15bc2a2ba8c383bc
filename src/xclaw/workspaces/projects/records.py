"""Which private trees there are of a project: one small file for each, written before the tree is."""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

import msgspec

from xclaw.contracts.projects import Project


@dataclass(frozen=True, slots=True)
class TreeRecord:
    """One run's private tree."""

    run_id: str
    branch: str
    directory: str
    start: str
    """The commit that it began at."""
    project: Project


class Records:
    """The records of one project. Whoever writes holds the project's lock."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    def get(self, run_id: str) -> TreeRecord | None:
        try:
            return msgspec.json.decode((self._directory / f"{run_id}.json").read_bytes(), type=TreeRecord)
        except (FileNotFoundError, msgspec.DecodeError):
            return None

    def all(self) -> list[TreeRecord]:
        if not self._directory.is_dir():
            return []
        found = (self.get(path.stem) for path in sorted(self._directory.glob("*.json")))
        return [record for record in found if record is not None]

    def put(self, record: TreeRecord) -> None:
        self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        new = self._directory / f".{record.run_id}-{secrets.token_hex(4)}"
        with new.open("xb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        new.rename(self._directory / f"{record.run_id}.json")
