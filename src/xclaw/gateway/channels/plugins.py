"""Adapters that a user wrote, by name: `package.module:factory` or `folder/file.py:factory`."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from xclaw.contracts.channels import Channel
from xclaw.contracts.errors import UsageError

FORMS = "write package.module:factory or folder/file.py:factory"


def load_channel(spec: str) -> Channel:
    """What calling the factory, without arguments, gives.

    Runs the user's code. Raises `UsageError` for a spec that is none, a module, file or factory that is
    not there, whatever fails in them, and for a result that is no `Channel`.
    """
    place, colon, name = spec.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise UsageError(f"{spec!r} names no channel: {FORMS}")
    try:
        module = _from_file(Path(place)) if place.endswith(".py") else _from_package(place)
        factory = getattr(module, name, None)
        if not callable(factory):
            raise UsageError(f"channel {spec!r}: there is no {name!r} to call in {place}")
        channel = factory()
    except UsageError:
        raise
    except Exception as error:
        raise UsageError(f"channel {spec!r} failed while it was loaded: {_said(error)}") from error
    return _checked(spec, channel)


def _from_package(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # something that the adapter itself needs is missing
        raise UsageError(f"there is no module {error.name!r} for the channel {name!r}; {FORMS}") from None


def _from_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise UsageError(f"there is no file {path} for a channel; {FORMS}")
    name = f"xclaw_channel_{path.stem}"
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise UsageError(f"{path} is no Python file")
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        found.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _checked(spec: str, channel: object) -> Channel:
    name = getattr(channel, "name", None)
    if not isinstance(name, str) or not name or not callable(getattr(channel, "serve", None)):
        kind = type(channel).__name__
        raise UsageError(
            f"channel {spec!r} gave a {kind}, which is no channel: it needs a `name` and `async serve(door)`"
        )
    return channel  # pyright: ignore[reportReturnType] - a protocol cannot be checked further at run time


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:500]
