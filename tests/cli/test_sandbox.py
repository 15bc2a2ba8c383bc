"""`xclaw sandbox`: what works here, and building the image, as a user has them."""

import json
import os
import subprocess
import sys
from pathlib import Path

from sandbox.machines import image

TIMEOUT_S = 110


def command(home: Path, *words: str, path: str | None = None) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("XCLAW_")}
    environment["XCLAW_HOME"] = str(home)
    if path is not None:
        environment["PATH"] = path
    return subprocess.run(
        [sys.executable, "-m", "xclaw", "sandbox", *words],
        capture_output=True,
        text=True,
        env=environment,
        cwd=home,
        timeout=TIMEOUT_S,
        check=False,
    )


def test_doctor_says_of_each_kind_whether_it_works_and_why_not(tmp_path: Path) -> None:
    """F3: no image was built, so there are no virtual machines; that says what to do."""
    done = command(tmp_path, "doctor", "--json")
    answer = json.loads(done.stdout)
    found = {row["backend"]: row for row in answer["sandboxes"]}
    assert set(found) == {"kvm", "bubblewrap", "container", "tcg", "host"}
    assert not found["tcg"]["works"]
    assert (
        "QEMU is not installed" in found["tcg"]["detail"] or "`xclaw sandbox build`" in found["tcg"]["detail"]
    )
    assert found["host"]["works"]
    assert "no isolation" in found["host"]["detail"]
    assert answer["used"] != "host"
    assert answer["used"] != "tcg"
    assert done.returncode == (0 if answer["used"] else 1)


def test_what_was_asked_for_and_does_not_work_is_said_and_fails(tmp_path: Path) -> None:
    """F3: nothing weaker is meant instead."""
    (tmp_path / "config.toml").write_text('[sandbox]\nbackend = "tcg"\n')
    done = command(tmp_path)
    assert done.returncode == 1, done
    assert "Nothing weaker is used in its place" in done.stdout


def test_build_without_its_tools_says_what_to_install(tmp_path: Path) -> None:
    empty = tmp_path / "bin"
    empty.mkdir()
    done = command(tmp_path, "build", path=str(empty))
    assert done.returncode == 2
    assert "no apt" in done.stderr
    assert "bubblewrap" in done.stderr


def test_build_finds_an_image_that_is_there_at_once(tmp_path: Path) -> None:
    """It is the same, so nothing is fetched or made."""
    built = image()
    (tmp_path / "config.toml").write_text(f'[sandbox]\nimage_dir = "{built.directory.parent}"\n')
    done = command(tmp_path, "build", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["directory"] == str(built.directory)
    assert "root file system" not in done.stderr
