"""`xclaw kb`: the documents that agents can search."""

import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE, FAILED, complain
from xclaw.cli.opening import settings_of_workspace, working_directory
from xclaw.cli.stored_options import KnowledgeOptions
from xclaw.cli.text import one_line, printable
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import TaskID

    from xclaw.memory.knowledge import KnowledgeBase, Report

_SHOWN_CHARACTERS = 600


def work_on_knowledge(options: KnowledgeOptions) -> int:
    """Add, list, remove or search documents."""
    from xclaw.memory.knowledge import KnowledgeBase
    from xclaw.memory.layout import places_of
    from xclaw.memory.meaning import embedder_of

    settings = settings_of_workspace(options.workspace).memory
    embedder = embedder_of(settings.meaning, settings.embedder_threads)
    base = KnowledgeBase(places_of(settings.root, options.user), settings, embedder)
    words, as_json = options.words or [], options.as_json
    if options.action != "list" and not "".join(words).strip():
        what = "WORDS" if options.action == "search" else "PATH"
        raise UsageError(f"what? Write: xclaw kb {options.action} {what}")
    match options.action:
        case "add":
            return _add(base, words, as_json=as_json)
        case "list":
            _list(base, as_json=as_json)
        case "remove":
            _remove(base, words, as_json=as_json)
        case "search":
            _search(base, " ".join(words), options.results, as_json=as_json)
    return DONE


def _add(base: "KnowledgeBase", words: Sequence[str], *, as_json: bool) -> int:
    here = working_directory()
    paths = [here / Path(word).expanduser() for word in words]
    with _progress() as tell:
        report = base.add(paths, tell)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(report)
    else:
        _print_report(report)
    return DONE if report.added or report.changed or report.unchanged or report.gone else FAILED


def _print_report(report: "Report") -> None:
    for path, reason in report.refused.items():
        complain(f"left out: {path}: {reason}")
    counts = {
        "added": report.added,
        "changed": report.changed,
        "unchanged": report.unchanged,
        "gone": report.gone,
        "left out": report.refused,
    }
    print(", ".join(f"{len(paths)} {name}" for name, paths in counts.items() if paths) or "nothing to add")


def _list(base: "KnowledgeBase", *, as_json: bool) -> None:
    from xclaw.memory.blocks import day

    documents = base.documents()
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"documents": documents})
        return
    if not documents:
        print("the knowledge base is empty. Add to it: xclaw kb add PATH")
    for document in documents:
        about = document.about
        print(
            f"{printable(document.path)}  {about.kind}  {about.size_bytes:,} bytes  "
            f"{about.passages} passages  {day(about.added_at)}"
        )


def _remove(base: "KnowledgeBase", words: Sequence[str], *, as_json: bool) -> None:
    removed = [path for word in words for path in base.remove(word)]
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented({"removed": removed})
        return
    for path in removed:
        print(f"removed {printable(path)}")


def _search(base: "KnowledgeBase", words: str, results: int, *, as_json: bool) -> None:
    from xclaw.memory.knowledge_tool import source_of

    hits = base.search(words, results)
    if as_json:
        from xclaw.cli.output import print_indented

        forms = [
            {
                "source": hit.source,
                "place": hit.passage.place,
                "relevance": hit.relevance,
                "text": hit.passage.text,
            }
            for hit in hits
        ]
        print_indented({"passages": forms})
        return
    if not hits:
        print("nothing fits" if base.documents() else "the knowledge base is empty: xclaw kb add PATH")
    for number, hit in enumerate(hits, 1):
        print(f"[{number}] {one_line(source_of(hit), 200)}  ({hit.relevance:.2f})")
        shown = printable(hit.passage.text[:_SHOWN_CHARACTERS])
        print("\n".join(f"    {line}" for line in shown.split("\n")) + "\n")


@contextmanager
def _progress() -> Generator[Callable[[str, int, int], None] | None]:
    """A bar on standard error, where that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    from xclaw.memory.knowledge import EMBEDDING

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TextColumn("{task.fields[what]}", markup=False), console=console) as bar:
        tasks: dict[str, TaskID] = {}

        def tell(what: str, done: int, total: int) -> None:
            name = "comparing by meaning" if what == EMBEDDING else "reading"
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=total, what="")
            shown = "" if what == EMBEDDING else one_line(Path(what).name, 40)
            bar.update(tasks[name], completed=done, total=total, what=shown)

        yield tell
