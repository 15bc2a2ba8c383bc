"""`xclaw config`: every value with where it came from; secrets are never shown."""

import difflib
from collections.abc import Sequence
from typing import Literal, cast

from xclaw.cli.failures import DONE, complain
from xclaw.cli.opening import settings_of_workspace
from xclaw.cli.text import printable
from xclaw.contracts.errors import UsageError
from xclaw.settings import Explained, Settings

Action = Literal["show", "path", "get"]


def show_config(action: Action, key: str | None, workspace: str | None, *, as_json: bool) -> int:
    """Show all values, the files they may come from, or one value."""
    settings = settings_of_workspace(workspace)
    for warning in settings.warnings:
        complain(f"warning: {warning}")
    rows = settings.explain()
    if action == "path":
        _paths(settings, as_json=as_json)
    elif action == "get":
        row = _one(rows, key)
        print(printable(_text(row.value)) if not as_json else _json(row.value))
    elif as_json:
        from xclaw.cli.output import print_indented

        print_indented([{"key": row.key, "value": row.value, "source": row.source} for row in rows])
    else:
        width = max(len(row.key) for row in rows)
        for row in rows:
            print(f"{row.key:{width}}  {printable(_text(row.value))}  ({printable(row.source)})")
    return DONE


def _one(rows: list[Explained], key: str | None) -> Explained:
    names = [row.key for row in rows]
    if key is None:
        raise UsageError("which value? Write: xclaw config get KEY, for example runtime.max_depth")
    for row in rows:
        if row.key == key:
            return row
    close = difflib.get_close_matches(key, names, n=3, cutoff=0.5)
    hint = f" Did you mean {' or '.join(close)}?" if close else " `xclaw config` lists them all."
    raise UsageError(f"there is no setting {key!r}.{hint}")


def _paths(settings: Settings, *, as_json: bool) -> None:
    rows = {
        "home": str(settings.home),
        "files": [str(path) for path in settings.files],
        "workspace": settings.workspace.root,
        "database": settings.store.path,
    }
    if as_json:
        from xclaw.cli.output import print_indented

        print_indented(rows)
        return
    for label, value in rows.items():
        print(f"{label:10} {printable(_text(value))}")


def _text(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", value))) or "-"
    return str(value)


def _json(value: object) -> str:
    from xclaw.cli.output import encoded

    return encoded(value).decode()
