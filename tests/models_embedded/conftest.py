"""The real server process, around a stand-in for the library."""

import os
import shutil
from pathlib import Path

import pytest


@pytest.fixture
def fake_llama(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Children find the stand-in under the library's name."""
    package = tmp_path / "library"
    package.mkdir()
    shutil.copy(Path(__file__).with_name("fake_llama.py"), package / "xllamacpp.py")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(package), os.environ.get("PYTHONPATH", "")]))
