"""Where a value comes from: a TOML file, the environment or a flag. Every value keeps its source."""

import difflib
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from xclaw.contracts.errors import UsageError
from xclaw.settings.shape import Key, Shape, dotted

PROJECT_FILE = "xclaw.toml"
USER_FILE = "config.toml"
MAX_FILE_BYTES = 1_000_000


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that somebody gave."""

    key: Key
    value: object
    source: str
    """A flag, an environment variable or `file:line`."""
    directory: Path
    """What a relative path in `value` is relative to."""
    textual: bool = False
    """The value is text that stands for any type: numbers, switches and lists are parsed from it."""


def project_file(cwd: Path) -> Path | None:
    """The nearest `xclaw.toml` from `cwd` upwards."""
    for directory in (cwd, *cwd.parents):
        candidate = directory / PROJECT_FILE
        if candidate.is_file():
            return candidate
    return None


def read_toml(path: Path, shape: Shape, warnings: list[str]) -> list[Setting]:
    """The settings in a file; unknown keys become warnings.

    Raises:
        UsageError: the file cannot be read, or is no TOML; says where and why.
    """
    text = _read_text(path)
    try:
        document = cast("dict[str, object]", tomllib.loads(text))
    except (ValueError, RecursionError) as error:  # a TOMLDecodeError, or a number of too many digits
        raise UsageError(f"{path}: not valid TOML: {error}. Correct the file and try again.") from None
    found: list[Setting] = []
    for key, value in _leaves(document, (), shape):
        line = _line_of(text, key)
        source = f"{path}:{line}" if line else str(path)
        if shape.hint(key) is None:
            warnings.append(f"{source}: unknown setting `{dotted(key)}` is ignored{_suggestion(key, shape)}")
        else:
            found.append(Setting(key, value, source, path.parent))
    return found


def _read_text(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{path}: larger than {MAX_FILE_BYTES:,} bytes; that is no settings file.")
        return path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise UsageError(
            f"{path}: not UTF-8 text (byte {error.start}). Save the file as UTF-8 and try again."
        ) from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}. Check its permissions.") from None


def _leaves(table: Mapping[str, object], above: Key, shape: Shape) -> Iterator[tuple[Key, object]]:
    """Every value with its key; a table below which nothing is known stays whole."""
    for name, value in table.items():
        key = (*above, name)
        if isinstance(value, dict) and shape.is_table(key):
            yield from _leaves(cast("dict[str, object]", value), key, shape)
        else:
            yield key, value


def _suggestion(key: Key, shape: Shape) -> str:
    """What was probably meant: a similar name in the same place, or the same name elsewhere."""
    names = [dotted(known) for known in (*shape.leaves, *shape.tables) if "*" not in known]
    close = difflib.get_close_matches(dotted(key), names, n=1, cutoff=0.75)
    if not close:
        close = [name for name in names if name.rpartition(".")[2] == key[-1]][:1]
    if not close:
        last = difflib.get_close_matches(key[-1], [name.rpartition(".")[2] for name in names], n=1)
        close = [name for name in names if last and name.rpartition(".")[2] == last[0]][:1]
    return f"; did you mean `{close[0]}`?" if close else ""


def _line_of(text: str, key: Key) -> int | None:
    """The line that sets `key`, as far as a plain reading of the file shows it."""
    name = rf"""\s*["']?{re.escape(key[-1])}["']?\s*="""
    whole = rf"\s*{re.escape(dotted(key))}\s*="
    section = ""
    for number, line in enumerate(text.splitlines(), 1):
        header = re.match(r"\s*\[+\s*([^\[\]]+?)\s*\]+", line)
        if header:
            section = header[1].replace(" ", "").replace('"', "").replace("'", "")
            if section == dotted(key):
                return number
        elif re.match(name if section == dotted(key[:-1]) else whole, line):
            return number
    return None


def environment_settings(
    env: Mapping[str, str], variables: Iterable[tuple[str, Key]], cwd: Path
) -> list[Setting]:
    """The settings that the environment gives. An empty variable counts as not set."""
    return [
        Setting(key, env[variable].strip(), variable, cwd, textual=True)
        for variable, key in variables
        if env.get(variable, "").strip()
    ]
