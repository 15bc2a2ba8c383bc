"""`xclaw scratchpad`: what the agents of a conversation share."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.opening import run_to_end, settings_of_workspace
from xclaw.cli.stored_options import ScratchpadOptions
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError
from xclaw.contracts.memory import PadEntry, Whose

if TYPE_CHECKING:
    from xclaw.memory.scratchpad import FileScratchpad


def show_scratchpad(options: ScratchpadOptions) -> int:
    """List the entries of a conversation's scratchpad, print one, or find some."""
    from xclaw.gateway.names import conversation_key
    from xclaw.memory.scratchpad import FileScratchpad

    pad = FileScratchpad(settings_of_workspace(options.workspace).memory)
    whose = Whose(options.user, conversation_key(options.session, options.user))
    action, text, as_json = options.action, options.text, options.as_json
    if action != "list" and not text.strip():
        raise UsageError(f"what? Write: xclaw scratchpad {action} {'NAME' if action == 'read' else 'WORDS'}")

    async def body() -> int:
        if action == "read":
            _print_entry(await pad.read(whose, text, options.entry_version), as_json=as_json)
        elif action == "search":
            await _search(pad, whose, text, as_json=as_json)
        else:
            _print_list(await pad.entries(whose), options.session, as_json=as_json)
        return DONE

    return run_to_end(body())


async def _search(pad: "FileScratchpad", whose: Whose, words: str, *, as_json: bool) -> None:
    from xclaw.memory.pad_tools import matching_lines

    found = await pad.search(whose, words)
    if as_json:
        _print_list(found, "", as_json=True)
        return
    if not found:
        print("no entry has any of these words")
    for entry in found:
        print(_line(entry))
        for line in matching_lines(entry, words).split("\n"):
            print(f"    {one_line(line, 160)}")


def _print_list(entries: Sequence[PadEntry], session: str, *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"entries": [_form(entry) for entry in entries]})
        return
    if not entries:
        print(f"the scratchpad of session {one_line(session, 60)} is empty")
    for entry in entries:
        print(_line(entry))


def _print_entry(entry: PadEntry, *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({**_form(entry), "text": entry.text})
        return
    print(printable(entry.text))


def _line(entry: PadEntry) -> str:
    from xclaw.memory.blocks import minute

    author = one_line(entry.author, 30)
    return (
        f"{one_line(entry.name, 60)}  version {entry.version}  {author}  {minute(entry.at)}  "
        f"{len(entry.text):,} characters"
    )


def _form(entry: PadEntry) -> dict[str, object]:
    return {
        "name": entry.name,
        "version": entry.version,
        "author": entry.author,
        "at": entry.at,
        "characters": len(entry.text),
    }
