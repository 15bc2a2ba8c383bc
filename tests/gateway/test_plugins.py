import asyncio
import sys
from pathlib import Path

import pytest

from behaviour.harness import settings_for, write_script
from gateway.served import served, with_gateway
from xclaw.contracts.errors import UsageError
from xclaw.gateway.channels.plugins import load_channel

EXAMPLE = f"{Path(__file__).parents[2] / 'examples' / 'file_inbox.py'}:FileInbox"

GOOD = """
class Bell:
    name = "bell"
    async def serve(self, door):
        pass
"""


def test_a_channel_is_loaded_from_a_file(tmp_path: Path) -> None:
    (tmp_path / "bell.py").write_text(GOOD)
    assert load_channel(f"{tmp_path / 'bell.py'}:Bell").name == "bell"


def test_a_channel_is_loaded_from_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bell_package").mkdir()
    (tmp_path / "bell_package" / "door.py").write_text(GOOD)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert load_channel("bell_package.door:Bell").name == "bell"


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("", "names no channel"),
        ("bell.py", "names no channel"),
        (":Bell", "names no channel"),
        ("bell.py:", "names no channel"),
        ("bell.py:Bell()", "names no channel"),
        ("none.py:Bell", "there is no file none.py"),
        ("no_such_package_x.door:Bell", "there is no module 'no_such_package_x'"),
        ("xclaw.nothing_here:Bell", "there is no module 'xclaw.nothing_here'"),
        ("bell.py:Nobody", "there is no 'Nobody' to call"),
        ("bell.py:NUMBER", "there is no 'NUMBER' to call"),
        ("bell.py:Fails", "RuntimeError: no key"),
        ("bell.py:Wants", "TypeError"),
        ("bell.py:Nameless", "which is no channel"),
        ("bell.py:dict", "there is no 'dict' to call"),
        ("broken.py:Bell", "SyntaxError"),
        ("missing.py:Bell", "No module named 'a_library_that_is_not_there'"),
    ],
)
def test_what_cannot_be_loaded_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spec: str, said: str
) -> None:
    (tmp_path / "bell.py").write_text(
        f"{GOOD}\nNUMBER = 7\n\ndef Fails():\n    raise RuntimeError('no key')\n"
        "\nclass Wants:\n    def __init__(self, key): ...\n\nclass Nameless:\n    async def serve(self, door): ...\n"
    )
    (tmp_path / "broken.py").write_text("def (:\n")
    (tmp_path / "missing.py").write_text("import a_library_that_is_not_there\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError) as refused:
        load_channel(spec)
    assert said in str(refused.value)


async def answered(file: Path) -> str:
    """The reply, once it is there."""
    reply = file.with_suffix(".reply.md")
    while not reply.exists():  # noqa: ASYNC110 - the file is all that there is to see
        await asyncio.sleep(0.02)
    return reply.read_text()


def test_the_file_inbox_answers_each_file_once_over_restarts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A6: the adapter of the docs."""
    inbox = tmp_path / "inbox"
    monkeypatch.setenv("FILE_INBOX", str(inbox))
    script = write_script(
        tmp_path,
        [{"agent": "orchestrator", "when": name, "replies": [{"text": f"to {name}"}]} for name in "ab"],
    )
    settings = with_gateway(settings_for(tmp_path, script))

    async def main() -> None:
        async with asyncio.timeout(20):
            async with served(settings, [load_channel(EXAMPLE)]) as gate:
                (inbox / "one.txt").write_text("a")
                assert await answered(inbox / "one.txt") == "to a\n"
                assert len(await gate.gateway.journal.runs(roots_only=True, limit=10)) == 1
            (inbox / "one.reply.md").unlink()
            (inbox / "two.txt").write_text("b")
            async with served(settings, [load_channel(EXAMPLE)]) as gate:
                assert await answered(inbox / "two.txt") == "to b\n"
                assert await answered(inbox / "one.txt") == "to a\n"
                assert len(await gate.gateway.journal.runs(roots_only=True, limit=10)) == 2

    asyncio.run(main())
    assert sorted(file.name for file in inbox.iterdir()) == [
        "one.reply.md",
        "one.txt",
        "two.reply.md",
        "two.txt",
    ]
