"""What a script finds under its names (standard library only): Python's harmless functions, and of a few
modules the functions alone, since a module leads to everything that it imports."""

import builtins
import collections
import functools
import itertools
import json
import math
import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

_BUILTINS = """abs all any bool bytes chr dict divmod enumerate filter float frozenset hash int isinstance iter
    len list map max min next ord pow range repr reversed round set slice sorted str sum tuple zip True False
    None ArithmeticError AssertionError AttributeError Exception IndexError KeyError LookupError OverflowError
    RuntimeError StopIteration TypeError ValueError ZeroDivisionError"""
_RE_NAMES = """A ASCII DOTALL I IGNORECASE M MULTILINE S U VERBOSE X compile escape findall finditer fullmatch
    match search split sub subn"""
_MODULES: dict[str, tuple[object, tuple[str, ...]]] = {
    "collections": (collections, ("Counter", "OrderedDict", "defaultdict", "deque")),
    "functools": (functools, ("partial", "reduce")),
    "itertools": (itertools, tuple(name for name in dir(itertools) if not name.startswith("_"))),
    "json": (json, ("JSONDecodeError", "dumps", "loads")),
    "math": (math, tuple(name for name in dir(math) if not name.startswith("_"))),
    "re": (
        re,
        tuple(_RE_NAMES.split()),
    ),
    "textwrap": (textwrap, ("dedent", "fill", "indent", "shorten", "wrap")),
}


NEEDED_LATER = (unicodedata,)
"""What Python itself imports when a name is not ASCII; then there are no imports any more."""


def modules() -> dict[str, SimpleNamespace]:
    """Stand-ins for what can be imported."""
    found = {
        name: SimpleNamespace(**{each: getattr(module, each) for each in names})
        for name, (module, names) in _MODULES.items()
    }
    return {**found, "typing": SimpleNamespace()}


def builtin_names(stand_ins: Mapping[str, SimpleNamespace]) -> dict[str, object]:
    """All of Python's own functions that a script has."""

    def imported(
        name: str,
        module_globals: object = None,
        module_locals: object = None,
        names: Sequence[str] | None = None,
        level: int = 0,
    ) -> SimpleNamespace:
        return stand_ins[name]

    return {**{name: getattr(builtins, name) for name in _BUILTINS.split()}, "__import__": imported}
