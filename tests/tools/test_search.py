"""The tool that looks for text in files, through the Tool contract, on a real directory, with both engines."""

import asyncio
import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tools.workspaces_for_tools import Setup, make_setup
from xclaw.contracts.errors import ToolFailed
from xclaw.contracts.tokens import ascii_length, share_inline
from xclaw.tools.functions import FunctionTool
from xclaw.tools.search import search_tool

RIPGREP = shutil.which("rg") or ""
ENGINES = [
    pytest.param(search_tool(), id="python"),
    pytest.param(
        search_tool(RIPGREP),
        id="ripgrep",
        marks=pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed"),
    ),
]
every_engine = pytest.mark.parametrize("search", ENGINES)


def found(search: FunctionTool, setup: Setup, arguments: Mapping[str, object]) -> list[str]:
    output = asyncio.run(search.run(arguments, setup.context))
    assert output.ok
    return output.content.splitlines()


def with_files(root: Path, files: Mapping[str, bytes]) -> Setup:
    setup = make_setup(root)
    for name, content in files.items():
        path = setup.private / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return setup


@every_engine
def test_lines_are_found_by_expression_with_their_files_and_numbers(
    tmp_path: Path, search: FunctionTool
) -> None:
    setup = with_files(
        tmp_path, {"src/a.py": b"import os\ndef foo():\n    pass\n", "b.md": b"foo\n", "c.txt": b"bar\n"}
    )
    assert found(search, setup, {"pattern": r"\bfo+"}) == ["b.md:1: foo", "src/a.py:2: def foo():"]
    assert found(search, setup, {"pattern": "foo", "path": "src"}) == ["src/a.py:2: def foo():"]
    assert found(search, setup, {"pattern": "foo", "path": "src/a.py"}) == ["src/a.py:2: def foo():"]
    absolute = str(setup.private / "src")
    assert found(search, setup, {"pattern": "foo", "path": absolute}) == [f"{absolute}/a.py:2: def foo():"]
    assert found(search, setup, {"pattern": "nothing"}) == ["[no matches in 3 files]"]


@every_engine
def test_text_is_found_as_it_is_and_in_any_case_when_asked(tmp_path: Path, search: FunctionTool) -> None:
    setup = with_files(tmp_path, {"a": b"x = a[0]\nX = A[0]\n", "b": "GRÖSSE größe 大小\n".encode()})
    assert found(search, setup, {"pattern": "a[0]", "literal": True}) == ["a:1: x = a[0]"]
    assert len(found(search, setup, {"pattern": "a[0]", "literal": True, "ignore_case": True})) == 2
    assert found(search, setup, {"pattern": "grö", "ignore_case": True}) == ["b:1: GRÖSSE größe 大小"]
    assert found(search, setup, {"pattern": "大.$"}) == ["b:1: GRÖSSE größe 大小"]
    assert found(search, setup, {"pattern": "--help"}) == ["[no matches in 2 files]"]


@every_engine
@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("*.py", ["a.py", "src/b.py", "src/deep/c.py"]),
        ("src/*.py", ["src/b.py"]),
        ("./src/*.py", ["src/b.py"]),
        ("src/**/*.py", ["src/b.py", "src/deep/c.py"]),
        ("**/c.py", ["src/deep/c.py"]),
        ("*.{md,ts}", ["d.ts", "src/e.md"]),
        ("!*.py", ["d.ts", "src/e.md"]),
        ("[ad].*", ["a.py", "d.ts"]),
        ("[!ad].*", ["src/b.py", "src/deep/c.py", "src/e.md"]),
        ("?.ts", ["d.ts"]),
    ],
)
def test_a_glob_says_which_files(tmp_path: Path, search: FunctionTool, glob: str, names: list[str]) -> None:
    everything = ["a.py", "d.ts", "src/b.py", "src/deep/c.py", "src/e.md"]
    setup = with_files(tmp_path, dict.fromkeys(everything, b"x\n"))
    assert found(search, setup, {"pattern": "x", "glob": glob}) == [f"{name}:1: x" for name in names]


@every_engine
def test_what_gitignore_leaves_out_is_found_only_when_asked(tmp_path: Path, search: FunctionTool) -> None:
    names = ["a.log", "build/a.txt", "keep.log", "sub/build", "sub/c.tmp", "sub/only.txt", "top.txt"]
    setup = with_files(tmp_path, dict.fromkeys(names, b"x\n"))
    (setup.private / ".gitignore").write_text("*.log\n!keep.log\nbuild/\n/top.txt\n# a comment\n")
    (setup.private / "sub" / ".gitignore").write_text("/only.txt\n*.tmp\n")
    (setup.private / ".git").mkdir()
    (setup.private / ".git" / "config").write_text("x\n")
    assert found(search, setup, {"pattern": "^x"}) == ["keep.log:1: x", "sub/build:1: x"]
    assert found(search, setup, {"pattern": "^x", "ignored": True}) == [f"{name}:1: x" for name in names]


@pytest.mark.skipif(not shutil.which("git"), reason="git is not installed")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.text(alphabet="ab*?/!.", min_size=1, max_size=6).filter(
            lambda line: not line.startswith("!") and "***" not in line
        ),
        min_size=1,
        max_size=4,
    )
)
def test_gitignore_is_read_as_git_reads_it(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    setup = with_files(
        tmp_path_factory.mktemp("ignore"),
        dict.fromkeys(["a", "b", "ab", "aa/a", "aa/b.a", "ba/a/b", "b.a/ab"], b"x\n"),
    )
    (setup.private / ".gitignore").write_text("\n".join(lines) + "\n")
    quiet = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", "init", "-q"], cwd=setup.private, env=quiet, check=True)
    listed = subprocess.run(
        ["git", "ls-files", "-o", "--exclude-per-directory=.gitignore"],
        cwd=setup.private, env=quiet, check=True, capture_output=True, text=True,
    ).stdout.split()  # fmt: skip
    ours = found(search_tool(), setup, {"pattern": "^x$"})
    assert sorted(line.partition(":")[0] for line in ours if ":1: x" in line) == sorted(
        set(listed) - {".gitignore"}
    )


@every_engine
def test_other_texts_than_plain_utf8_are_searched_and_binaries_are_not(
    tmp_path: Path, search: FunctionTool
) -> None:
    setup = with_files(
        tmp_path,
        {
            "binary": b"foo\0\x01",
            "bom": b"\xef\xbb\xbffoo\r\nend foo\r\n",
            "latin1": b"caf\xe9 foo\n",
            "late-nul": b"a" * 9_000 + b"\nfoo \0\n",
            "no-end": b"foo",
            "utf16": "foo\n".encode("utf-16"),
        },
    )
    assert found(search, setup, {"pattern": "^foo"}) == [
        "bom:1: foo",
        "late-nul:2: foo ␀",
        "no-end:1: foo",
        "utf16:1: foo",
    ]
    assert found(search, setup, {"pattern": "foo$"})[0:2] == ["bom:1: foo", "bom:2: end foo"]
    assert "latin1:1: caf\ufffd foo" in found(search, setup, {"pattern": "foo"})
    with pytest.raises(ToolFailed, match="binary"):
        found(search, setup, {"pattern": "foo", "path": "binary"})


@every_engine
def test_a_long_line_is_shown_around_the_match(tmp_path: Path, search: FunctionTool) -> None:
    setup = with_files(
        tmp_path, {"min.js": b"x" * 3_000 + b"foo" + b"y" * 3_000 + b"\n", "huge": b"z" * 2_000_000 + b"foo"}
    )
    huge, shown = found(search, setup, {"pattern": "foo"})
    assert shown.startswith("min.js:1: …x")
    assert "xxfooyy" in shown
    assert shown.endswith("y…")
    assert max(len(huge), len(shown)) < 300


@every_engine
def test_many_lines_are_cut_to_what_an_answer_may_hold_and_counted(
    tmp_path: Path, search: FunctionTool
) -> None:
    setup = with_files(tmp_path, {"a.txt": b"foo bar\n" * 500})
    lines = found(search, setup, {"pattern": "foo"})
    assert lines[-1] == f"[{len(lines) - 1} of 500 lines: narrow the pattern, path or glob]"
    assert 7_000 < len("\n".join(lines)) <= 8_000
    (setup.private / "b.txt").write_bytes("字".encode() * 100 + b"\n" + "字\n".encode() * 2_000)
    many = found(search, setup, {"pattern": "字", "path": "b.txt"})
    assert "of more than 1000 lines" in many[-1]


@every_engine
@pytest.mark.parametrize("character", ["x", "字", "é", "🌍"])
def test_what_is_found_is_never_more_than_an_answer_may_hold(
    tmp_path: Path, search: FunctionTool, character: str
) -> None:
    """E2, H10: so nothing of it is spilled."""
    setup = with_files(tmp_path, {"a": f"{character * 150}\n".encode() * 500})
    lines = found(search, setup, {"pattern": character})
    assert 0.9 < ascii_length("\n".join(lines)) / setup.context.inline_chars <= 1
    assert share_inline("\n".join(lines), setup.context.inline_chars) == 1


@every_engine
@pytest.mark.parametrize("pattern", ["(a", "*", "[z", "a{2,1}", "(?P<x>a)(?P<x>b)", "\\"])
def test_what_is_no_expression_is_told(tmp_path: Path, search: FunctionTool, pattern: str) -> None:
    setup = with_files(tmp_path, {"a": b"a\\\n"})
    with pytest.raises(ToolFailed, match="literal=true"):
        found(search, setup, {"pattern": pattern})
    assert found(search, setup, {"pattern": pattern, "literal": True})


@pytest.mark.parametrize(
    "arguments",
    [
        {"pattern": ""},
        {"pattern": "a\nb"},
        {"pattern": "a\0"},
        {"pattern": "x" * 1_001},
        {"pattern": "\ud800"},
        {"pattern": "a", "path": "/etc"},
        {"pattern": "a", "path": ".."},
        {"pattern": "a", "path": "none"},
    ],
)
def test_what_cannot_be_looked_for_is_refused(tmp_path: Path, arguments: dict[str, object]) -> None:
    with pytest.raises(ToolFailed):
        found(search_tool(), with_files(tmp_path, {"a": b"a\n"}), arguments)


@every_engine
def test_no_link_is_followed_and_no_pipe_is_waited_for(tmp_path: Path, search: FunctionTool) -> None:
    """F02, F10."""
    setup = with_files(tmp_path, {"a": b"secret of mine\n"})
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "s").write_text("secret\n")
    (setup.private / "file").symlink_to(outside / "s")
    (setup.private / "directory").symlink_to(outside)
    os.mkfifo(setup.private / "pipe")
    assert found(search, setup, {"pattern": "secret"}) == ["a:1: secret of mine"]
    for path in ("file", "directory", "directory/s"):
        with pytest.raises(ToolFailed):
            found(search, setup, {"pattern": "secret", "path": path})


@every_engine
def test_a_name_cannot_forge_a_line(tmp_path: Path, search: FunctionTool) -> None:
    setup = with_files(tmp_path, {"a\nb:1: forged": b"x\n"})
    assert found(search, setup, {"pattern": "x"}) == ["'a\\nb:1: forged':1: x"]


def test_an_expression_that_takes_for_ever_is_stopped(tmp_path: Path) -> None:
    """Nothing else waits meanwhile, and nothing of it is left."""
    setup = with_files(tmp_path, {"a": b"a" * 200 + b"b\n", "b": b"other\n"})
    arguments = {"pattern": "^(a+)+$"}

    async def main() -> str:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                await asyncio.sleep(0)
                ticks += 1

        ticking = asyncio.create_task(tick())
        output = await search_tool(seconds=0.5).run(arguments, setup.context)
        ticking.cancel()
        assert ticks > 1_000
        return output.content

    started = time.monotonic()
    assert "took too long" in asyncio.run(main())
    assert time.monotonic() - started < 5
    assert not _search_processes()


def test_cancelling_ends_the_process(tmp_path: Path) -> None:
    setup = with_files(tmp_path, {"a": b"a" * 200 + b"b\n"})

    async def main() -> None:
        running = asyncio.create_task(search_tool().run({"pattern": "^(a+)+$"}, setup.context))
        await asyncio.to_thread(wait_until, lambda: bool(_search_processes()))
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        await asyncio.to_thread(wait_until, lambda: not _search_processes())

    asyncio.run(main())


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline


def _search_processes() -> list[str]:
    """Processes of this process that search."""
    me = os.getpid()
    children = Path(f"/proc/{me}/task/{me}/children")
    found: list[str] = []
    for task in Path(f"/proc/{me}/task").iterdir():
        with contextlib.suppress(OSError):
            found += [child for child in (task / "children").read_text().split() if _is_search(child)]
    assert children.exists()
    return found


def _is_search(process: str) -> bool:
    with contextlib.suppress(OSError):
        return b"search_child" in Path(f"/proc/{process}/cmdline").read_bytes()
    return False


def test_no_file_stays_open(tmp_path: Path) -> None:
    setup = with_files(tmp_path, {f"d{n % 7}/{n}": b"foo\n" for n in range(200)})
    search = search_tool()
    found(search, setup, {"pattern": "foo"})
    before = open_files()
    found(search, setup, {"pattern": "foo"})
    found(search_tool(seconds=0.0001), setup, {"pattern": "foo"})
    assert open_files() == before


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


PATTERNS = st.one_of(
    st.text(alphabet="abé ", min_size=1, max_size=3),
    st.sampled_from(
        [
            "^a",
            "b$",
            "a.b",
            "[ab]+",
            "a|b",
            "(?i)A",
            r"\ba",
            r"\d+",
            r"\w\s",
            "a{2}",
            "é?b",
            "[^a]",
            ".*",
            "a*?b",
            r"\S",
            "(?:ab)+",
        ]
    ),
)
LINES = st.text(alphabet="abAé 1\t.\r", max_size=12)


@pytest.mark.skipif(not RIPGREP, reason="ripgrep is not installed")
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    pattern=PATTERNS,
    files=st.lists(st.lists(LINES, max_size=5), min_size=1, max_size=3),
    literal=st.booleans(),
    ignore_case=st.booleans(),
    end=st.sampled_from(["\n", "\r\n"]),
)
def test_both_engines_give_the_same_answer(
    tmp_path_factory: pytest.TempPathFactory,
    pattern: str,
    files: list[list[str]],
    literal: bool,
    ignore_case: bool,
    end: str,
) -> None:
    content = {f"f{number}": end.join(lines).encode() for number, lines in enumerate(files)}
    setup = with_files(tmp_path_factory.mktemp("both"), content)
    arguments = {"pattern": pattern, "literal": literal, "ignore_case": ignore_case}
    assert found(search_tool(RIPGREP), setup, arguments) == found(search_tool(), setup, arguments)
