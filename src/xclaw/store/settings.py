"""What the store is told."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class StoreSettings:
    path: str
    """The database file; created, with its directory, when it does not exist."""
    synchronous: Literal["normal", "full"] = "normal"
    """"normal": a killed process loses nothing, a power cut may lose the last moments.
    "full": a power cut loses nothing either; each commit waits for the disk."""
