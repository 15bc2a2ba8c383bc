"""The package's public names."""

import subprocess
import sys

import pytest

from xclaw import testing


def test_every_public_name_is_there_and_sorted() -> None:
    assert testing.__all__ == sorted(testing.__all__, key=lambda name: (not name.isupper(), name))
    for name in testing.__all__:
        assert getattr(testing, name) is not None
    with pytest.raises(AttributeError, match="'nothing'"):
        getattr(testing, "nothing")  # noqa: B009  # the type checker knows that it is not there


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, xclaw.testing; print(sorted({'aiohttp', 'msgspec', 'yaml', 'pytest'} & set(sys.modules)))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert loaded.stdout == "[]\n"
