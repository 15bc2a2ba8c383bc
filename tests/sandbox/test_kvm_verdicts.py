"""That a guest does not boot is found out once, not by every process (SPEC F3)."""

import json
from pathlib import Path

import pytest

from xclaw.contracts.sandbox import Probe
from xclaw.sandbox.kvm.image import Image
from xclaw.sandbox.kvm.verdicts import BELIEVED_S, Verdicts

NO = Probe("kvm", False, "it hangs")
YES = Probe("kvm", True, "it boots")


def verdicts(directory: Path, image: str = "one") -> Verdicts:
    program = directory / "qemu"
    if not program.exists():
        program.write_text("")
    return Verdicts(directory, "kvm", Image(directory / image, "r", "v", "6.1", "now"), str(program))


@pytest.mark.parametrize("probe", [NO, YES])
def test_a_verdict_is_known_to_the_next_process(tmp_path: Path, probe: Probe) -> None:
    assert verdicts(tmp_path).known() is None
    verdicts(tmp_path).remember(probe)
    assert verdicts(tmp_path).known() == probe


def test_another_image_or_qemu_is_tried_again(tmp_path: Path) -> None:
    verdicts(tmp_path).remember(NO)
    assert verdicts(tmp_path, "two").known() is None
    (tmp_path / "qemu").unlink()
    assert verdicts(tmp_path).known() is None


def test_another_start_of_the_computer_and_another_hour_are(tmp_path: Path) -> None:
    verdicts(tmp_path).remember(NO)
    (path,) = tmp_path.glob("probe-*.json")
    content = json.loads(path.read_text())
    for change in ({"of": "another"}, {"at": content["at"] - BELIEVED_S - 1}, {"at": content["at"] + 60}):
        path.write_text(json.dumps(content | change))
        assert verdicts(tmp_path).known() is None, change


@pytest.mark.parametrize("text", ["", "[]", "{", '{"works": false}', "\0"])
def test_a_file_that_is_damaged_tells_nothing(tmp_path: Path, text: str) -> None:
    verdicts(tmp_path).remember(NO)
    (path,) = tmp_path.glob("probe-*.json")
    path.write_text(text)
    assert verdicts(tmp_path).known() is None


def test_a_verdict_that_cannot_be_kept_is_no_error(tmp_path: Path) -> None:
    found = verdicts(tmp_path)
    gone = Verdicts(tmp_path / "none", "kvm", Image(tmp_path, "r", "v", "6.1", "now"), str(tmp_path / "qemu"))
    gone.remember(YES)
    assert gone.known() is None
    assert found.known() is None
