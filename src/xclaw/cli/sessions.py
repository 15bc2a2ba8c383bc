"""`xclaw sessions`: list, show, rename, export and delete conversations."""

from typing import TYPE_CHECKING

from xclaw.cli.failures import DONE
from xclaw.cli.options import SessionsOptions
from xclaw.cli.session_lines import session_line, task_line
from xclaw.cli.text import one_line
from xclaw.contracts.errors import UsageError

if TYPE_CHECKING:
    from xclaw.cli.desk_access import Desk


def sessions(options: SessionsOptions) -> int:
    """Answers the exit code. Raises `UsageError` for what is missing or too much."""
    from xclaw.cli.desk_access import at_desk
    from xclaw.cli.opening import settings_of_workspace

    action, name = options.action, options.name or ""
    title = " ".join(options.title or [])
    if action != "list" and not name:
        raise UsageError(f"name the session: xclaw sessions {action} NAME. `xclaw sessions` lists them.")
    if (action == "rename") != bool(title):
        raise UsageError("a title goes with `rename`, and only there: xclaw sessions rename NAME TITLE")
    settings = settings_of_workspace(options.workspace)

    async def body(desk: "Desk") -> int:
        match action:
            case "list":
                await _list(desk, options)
            case "show":
                await _show(desk, name, as_json=options.as_json)
            case "rename":
                view = await desk.rename(name, title)
                _say(view, f"{name!r} is called {view['title']!r} now", as_json=options.as_json)
            case "export":
                await _export(desk, name, options)
            case "delete":
                await desk.delete(name)
                _say({"deleted": name}, f"{name!r} is forgotten for good", as_json=options.as_json)
        return DONE

    return at_desk(settings, body)


async def _list(desk: "Desk", options: SessionsOptions) -> None:
    rows = await desk.list(options.limit)
    if options.as_json:
        from xclaw.cli.output import print_indented

        print_indented({"sessions": rows})
        return
    if not rows:
        print("no sessions yet. Begin one: xclaw")
    for row in rows:
        print(session_line(row))


async def _show(desk: "Desk", name: str, *, as_json: bool) -> None:
    view = await desk.show(name)
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(view)
        return
    print(session_line(view))
    for row in view["runs"]:
        print(task_line(row))


async def _export(desk: "Desk", name: str, options: SessionsOptions) -> None:
    """To standard output, as it is: a file's contents."""
    import sys

    form = "jsonl" if options.as_json else "markdown"
    sys.stdout.buffer.write((await desk.export(name, form)).encode("utf-8", "replace"))
    sys.stdout.buffer.flush()


def _say(form: object, text: str, *, as_json: bool) -> None:
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(form)
        return
    print(one_line(text, 300))
