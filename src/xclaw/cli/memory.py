"""`xclaw memory`: what agents remember, and forgetting it."""

from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, complain
from xclaw.cli.opening import settings_of_workspace
from xclaw.cli.stored_options import MemoryOptions
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.memory.notebook import FiledNote, Notebook

_FOUND = 10


def show_memory(options: MemoryOptions) -> int:
    """List, show, find or forget notes, or say where they are."""
    from xclaw.memory.meaning import embedder_of
    from xclaw.memory.memory import FileMemory

    settings = settings_of_workspace(options.workspace).memory
    memory = FileMemory(settings, embedder_of(settings.meaning, settings.embedder_threads))
    notebook = memory.notebook(options.user)
    agent, as_json = options.agent, options.as_json
    match options.action:
        case "list":
            _list(notebook, agent, as_json=as_json)
        case "path":
            _paths(notebook, as_json=as_json)
        case "show":
            _show(notebook, _needed(options.text, "show ID"), as_json=as_json)
        case "search":
            _search(notebook, _needed(options.text, "search WORDS"), agent, as_json=as_json)
        case "forget":
            _forget(notebook, _needed(options.text, "forget ID"), agent, as_json=as_json)
    return DONE


def _needed(text: str, usage: str) -> str:
    if not text.strip():
        raise UsageError(f"what? Write: xclaw memory {usage}")
    return text


def _list(notebook: "Notebook", agent: str | None, *, as_json: bool) -> None:
    notes = notebook.listed(agent)
    unreadable = notebook.unreadable()
    if as_json:
        _print({"memories": [_form(filed) for filed in notes], "unreadable": unreadable})
        return
    for name, fault in unreadable.items():
        complain(f"warning: {name}: {fault}")
    if not notes:
        print(f"no memories yet. They are kept in {printable(str(notebook.places.root))}")
    for filed in notes:
        print(_line(filed))


def _show(notebook: "Notebook", note_id: str, *, as_json: bool) -> None:
    filed = next((filed for filed in notebook.listed() if filed.note.id == note_id.strip()), None)
    if filed is None:
        raise UsageError(f"there is no memory {note_id[:60]!r}. `xclaw memory` lists them.")
    if as_json:
        _print(_form(filed))
        return
    print(f"{_head(filed)}\n\n{printable(filed.note.text)}")


def _search(notebook: "Notebook", words: str, agent: str | None, *, as_json: bool) -> None:
    found = notebook.search(words, _FOUND) if agent is None else notebook.recall(words, _FOUND, agent)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"memories": found})
        return
    if not found:
        print("no memory fits")
    for note in found:
        print(f"{note.id}  {note.relevance:.2f}  {one_line(note.file, 60)}  {one_line(note.text, 200)}")


def _forget(notebook: "Notebook", note_id: str, agent: str | None, *, as_json: bool) -> None:
    note = notebook.forget(note_id, agent)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"forgotten": note})
        return
    print(f"forgot {note.id} of {one_line(note.file, 60)}: {one_line(note.text, 200)}")


def _paths(notebook: "Notebook", *, as_json: bool) -> None:
    places = notebook.places
    files = [str(path) for path in places.files()]
    if as_json:
        _print({"directory": str(places.root), "files": files})
        return
    print(printable(str(places.root)))
    for name in files:
        print(f"  {printable(name)}")


def _line(filed: "FiledNote") -> str:
    return f"{_head(filed)}  {one_line(filed.note.text, 120)}"


def _head(filed: "FiledNote") -> str:
    from xclaw.memory.blocks import day

    author = one_line(filed.note.author, 30) or "by hand"
    return f"{filed.note.id}  {day(filed.at)}  {author}  {one_line(filed.file, 60)}"


def _form(filed: "FiledNote") -> dict[str, object]:
    return {
        "id": filed.note.id,
        "text": filed.note.text,
        "author": filed.note.author,
        "at": filed.at,
        "file": filed.file,
    }


def _print(form: dict[str, object]) -> None:
    from xclaw.cli.output import print_indented

    print_indented(form)
