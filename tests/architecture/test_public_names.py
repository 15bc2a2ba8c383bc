"""The package's public names: there, sorted, and cheap to import."""

import subprocess
import sys

import pytest

import xclaw


def test_every_public_name_is_there_and_sorted() -> None:
    assert xclaw.__all__ == sorted(xclaw.__all__)
    assert set(xclaw.__all__) <= set(dir(xclaw))
    for name in xclaw.__all__:
        assert getattr(xclaw, name) is not None
    with pytest.raises(AttributeError, match="'nothing'"):
        getattr(xclaw, "nothing")  # noqa: B009  # the type checker knows that it is not there


def test_every_error_class_is_public() -> None:
    found = {xclaw.XclawError}
    while more := {sub for error in found for sub in error.__subclasses__()} - found:
        found |= more
    contracts = {error.__name__ for error in found if error.__module__ == "xclaw.contracts.errors"}
    assert contracts <= set(xclaw.__all__)
    assert len(contracts) > 10


def test_importing_the_package_loads_nothing_else_of_it() -> None:
    code = "import sys, xclaw; print([name for name in sys.modules if name.startswith('xclaw.')])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
