"""Turns what somebody wrote into a value of the type that a room declared, or says what is wrong."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, cast, get_args, get_origin

import msgspec

from xclaw.contracts.errors import UsageError
from xclaw.contracts.permissions import parse_rule
from xclaw.settings.shape import Key, dotted
from xclaw.settings.sources import Setting

PATHS: frozenset[Key] = frozenset(
    {
        ("workspace", "root"),
        ("store", "path"),
        ("sandbox", "image_dir"),
        ("project", "directory"),
        ("project", "ignore_file"),
        ("agents", "directories"),
        ("embedded", "cache_dir"),
        ("embedded", "model_path"),
        ("embedded", "python"),
        ("router", "rules_files"),
        ("gateway", "token_file"),
        ("gateway", "users_file"),
        ("gateway", "state_file"),
    }
)
RULES: frozenset[Key] = frozenset({("permissions", "allow"), ("permissions", "ask"), ("permissions", "deny")})
SECRET_NAMES = ("api_key", "token", "headers", "otlp_headers")
MAY_BE_ZERO = (
    "max_depth",
    "max_children",
    "budget_usd",
    "budget_tokens",
    "retries",
    "backoff_s",
    "port",
    "pool_size",
)
PRICES = ("input_usd", "output_usd", "cached_usd")


def converted(setting: Setting, hint: object, env: Mapping[str, str]) -> object:
    """The value as `hint` wants it; text is parsed for numbers and switches, paths are made absolute.

    Raises:
        UsageError: naming the key, the source and what was expected.
    """
    value = _split(setting.value, hint)
    try:
        result = cast("object", msgspec.convert(value, hint, strict=not setting.textual))
    except msgspec.ValidationError:
        raise UsageError(
            f"{setting.source}: `{dotted(setting.key)}` should be {expected(hint)}, not {_shown(setting)}."
        ) from None
    if setting.key in PATHS:
        return _absolute(result, setting, env)
    if setting.key[-1] == "api_key" and isinstance(result, str) and not setting.textual:
        return _from_variable(result, setting, env)
    if setting.key in RULES:
        _check_rules(setting, result)
    _check_number(setting, result)
    return result


def absolute(text: str, directory: Path, env: Mapping[str, str]) -> Path:
    """A path with `~` expanded, relative to `directory`. It need not exist."""
    if text == "~" or text.startswith("~/"):
        text = (env.get("HOME") or str(Path.home())) + text[1:]
    return Path(directory, text).absolute()


def expected(hint: object) -> str:
    """A type in words."""
    arguments = [item for item in get_args(hint) if item is not type(None)]
    if get_origin(hint) is Literal:
        return " or ".join(f'"{choice}"' for choice in arguments)
    if type(None) in get_args(hint):
        return " or ".join(expected(item) for item in arguments)
    if get_origin(hint) is tuple:
        return "a list of texts"
    names = {int: "a whole number", float: "a number", str: "a text", bool: "true or false"}
    return names.get(cast("type", hint), "a table")


def redacted(key: Key, value: object) -> object:
    """`value` for showing: what may be a secret is replaced by a mark that it is set."""
    if key[-1] in SECRET_NAMES and value:
        return "(set, not shown)"
    if key[-1] in ("base_url", "otlp_endpoint") and isinstance(value, str):
        return re.sub(r"//[^/@]*@", "//(not shown)@", value)
    return value


def _absolute(value: object, setting: Setting, env: Mapping[str, str]) -> object:
    if isinstance(value, str):
        if not value.strip() or "\0" in value:
            raise UsageError(f"{setting.source}: `{dotted(setting.key)}` should be a path, not {value!r}.")
        return str(absolute(value, setting.directory, env))
    if isinstance(value, tuple):
        return tuple(_absolute(item, setting, env) for item in cast("tuple[object, ...]", value))
    return value


def _from_variable(text: str, setting: Setting, env: Mapping[str, str]) -> str:
    """A key that a file names as `$VARIABLE`, so that the file need not hold it."""
    if not text.startswith("$"):
        return text
    variable = text[1:].strip("{}")
    if not env.get(variable):
        raise UsageError(
            f"{setting.source}: `{dotted(setting.key)}` names the environment variable {variable!r}, "
            "which is not set. Set it, or remove the line."
        )
    return env[variable]


def _split(value: object, hint: object) -> object:
    """One text for a list is a list, comma-separated; anything else stays as it is."""
    if get_origin(hint) is tuple and isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    return value


def _shown(setting: Setting) -> str:
    shown = repr(redacted(setting.key, setting.value))
    return shown if len(shown) <= 80 else shown[:80] + "…"


def _check_rules(setting: Setting, value: object) -> None:
    for rule in cast("tuple[str, ...]", value):
        try:
            parse_rule(rule)
        except ValueError as error:
            raise UsageError(f"{setting.source}: `{dotted(setting.key)}`: {error}.") from None


def _check_number(setting: Setting, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return
    zero = setting.key[-1] in MAY_BE_ZERO + PRICES
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        bound = "0 or more" if zero else "more than 0"
        raise UsageError(f"{setting.source}: `{dotted(setting.key)}` should be {bound}, not {value}.")
