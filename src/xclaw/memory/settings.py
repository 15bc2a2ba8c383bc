"""What memory, the scratchpad and the knowledge base can be told."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class MemorySettings:
    """Where notes are and how much they may hold."""

    root: str
    """The directory of memory files; made on first use."""
    scratchpads: str
    """The directory of scratchpads, beside the journal that has their conversations."""
    recall_k: int = 5
    """How many memories the orchestrator is shown with a message; 0: none."""
    meaning: Literal["auto", "off"] = "auto"
    """"auto": compare by meaning too where the embedder is installed (`xclaw[local]`)."""
    embedder_threads: int = 1
    """More are faster only where as many cores have nothing else to do."""
    durable: bool = True
    """Notes survive a power cut, which costs some milliseconds each; a crash they survive anyway."""
    max_note_chars: int = 2_000
    max_file_bytes: int = 1_000_000
    """The largest memory file that is added to."""
    max_transcript_bytes: int = 2_000_000
    """Of a transcript; then it begins anew, and the one before is kept."""
    max_pad_entry_chars: int = 200_000
    """Of one version of a scratchpad entry."""
    max_pad_entries: int = 500
    """In one conversation."""
    max_pad_bytes: int = 8_000_000
    """Of one conversation's scratchpad on disk, all versions together."""
    max_documents: int = 10_000
    """In the knowledge base."""
    max_document_bytes: int = 50_000_000
    """The largest file that is added to it."""
