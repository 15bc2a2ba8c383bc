"""Options of the commands over what is kept beside the journal: memory, scratchpad, knowledge base."""

from dataclasses import dataclass
from typing import Annotated, Literal

import typer

from xclaw.cli.options import WorkspaceDir
from xclaw.contracts.users import OWNER

Words = Annotated[
    list[str] | None,
    typer.Argument(help="Words, an id, a name or paths.", metavar="WORDS", show_default=False),
]


@dataclass(frozen=True, kw_only=True)
class StoredOptions:
    """What each of them takes."""

    user: Annotated[str, typer.Option(help="Whose; the owner's by default.", metavar="NAME")] = OWNER
    workspace: WorkspaceDir = None
    as_json: Annotated[bool, typer.Option("--json", help="JSON instead of text.")] = False


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(StoredOptions):
    """What `xclaw memory` takes."""

    action: Annotated[
        Literal["list", "show", "search", "forget", "path"],
        typer.Argument(help="All memories, one, those that fit, forget one, or the files."),
    ] = "list"
    words: Words = None
    agent: Annotated[
        str | None,
        typer.Option("--agent", "-a", help="What this agent sees: its own and the team's.", metavar="NAME"),
    ] = None

    @property
    def text(self) -> str:
        return " ".join(self.words or [])


@dataclass(frozen=True, kw_only=True)
class ScratchpadOptions(StoredOptions):
    """What `xclaw scratchpad` takes."""

    action: Annotated[
        Literal["list", "read", "search"], typer.Argument(help="All entries, one, or those with some words.")
    ] = "list"
    words: Words = None
    session: Annotated[
        str, typer.Option("--session", "-s", help="The conversation whose it is.", metavar="NAME")
    ] = "cli"
    entry_version: Annotated[
        int | None, typer.Option(help="With `read`: an earlier one.", metavar="N", min=1)
    ] = None

    @property
    def text(self) -> str:
        return " ".join(self.words or [])


@dataclass(frozen=True, kw_only=True)
class KnowledgeOptions(StoredOptions):
    """What `xclaw kb` takes."""

    action: Annotated[
        Literal["add", "list", "remove", "search"],
        typer.Argument(help="Add files or folders, list or remove documents, or search them."),
    ] = "list"
    words: Words = None
    results: Annotated[
        int, typer.Option("--results", "-k", help="With `search`: how many passages.", min=1, max=20)
    ] = 5
