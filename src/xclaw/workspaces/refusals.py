"""Words for what stops an access: what a model can act on, and nothing of any contents."""

import difflib
import errno
import itertools
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager

from xclaw.contracts.errors import ToolFailed
from xclaw.workspaces.containment import (
    NotRegular,
    OutsideVisible,
    Place,
    Region,
    opened_directory,
)

_LOOKED_AT = 1_000
"""Names of a directory that are compared to suggest one."""
_TO_LIST = " list_dir shows what is there"


@contextmanager
def explained(
    path: str, action: str, allowed: Callable[[], str], similar: Callable[[], str]
) -> Generator[None]:
    """Turn errors of an access to `path` into `ToolFailed`; the two texts are made when needed."""
    try:
        yield
    except OutsideVisible:
        raise ToolFailed(f"{shown(path)} is outside what this task may see. {allowed()}") from None
    except NotRegular as error:
        what = str(error)
        tip = "; list_dir shows what is in it" if what == "directory" else ""
        raise ToolFailed(f"{shown(path)} is not a regular file but a {what}{tip}") from None
    except FileNotFoundError:
        raise ToolFailed(f"{shown(path)} does not exist.{similar()}") from None
    except OSError as error:
        raise ToolFailed(f"could not {action} {shown(path)}: {_reason(error)}") from error


def similar_names(place: Place, visible: tuple[Region, ...]) -> str:
    """Names beside the one that is missing, when one of them may have been meant."""
    parent = Place(place.region, place.parts[:-1])
    try:
        with opened_directory(parent, visible) as directory, os.scandir(directory) as entries:
            first = itertools.islice(entries, _LOOKED_AT)
            names = {entry.name.casefold(): entry.name for entry in first}
    except (OSError, OutsideVisible):
        return _TO_LIST
    wanted = place.parts[-1].casefold() if place.parts else ""
    close = [readable_name(names[key]) for key in difflib.get_close_matches(wanted, names, n=3)]
    return f" Did you mean {', '.join(map(shown, close))}?" if close else _TO_LIST


def shown(text: str) -> str:
    return repr(text if len(text) <= 200 else f"{text[:200]}…")


def readable_name(name: str) -> str:
    """Bytes that are no text are shown as escapes, so that a name can always be sent on."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOSPC:
        return "the disk is full; what was there before is unchanged"
    if error.errno in (errno.ENOTDIR, errno.EISDIR):
        return "a part of the path is a file where a directory is needed, or the other way round"
    return error.strerror or type(error).__name__
