"""Names and paths that others wrote."""

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from xclaw.contracts.errors import ToolFailed, UsageError
from xclaw.workspaces.names import folded, safe_component, split_path, versioned

UNSAFE = [
    "../../evil",
    "a/b",
    "",
    ".",
    "..",
    "CON",
    "con",
    "nul",
    "~",
    "a.b",
    "../../../tmp/x",
    "\udcff",
    " ",
]
LOOKALIKES = ["coder", "Coder", "CODER", "соder", "ｃｏｄｅｒ", "coder ", "co­der", "coder.", "c0der"]


@pytest.mark.parametrize("name", ["coder", "web_scraper", "a-b", "0", "abc123", "x" * 63])
def test_a_plain_name_is_its_own_directory(name: str) -> None:
    assert safe_component(name) == name


@pytest.mark.parametrize(
    "name",
    [*UNSAFE, "com1", "a" * 300, "规划师", "-rf", "a\\b", "é", "e\u0301", "lpt¹", "web-AbC_123"],
)
def test_any_other_name_is_mapped_to_one_safe_component(name: str) -> None:
    """F04."""
    component = safe_component(name)
    assert component != name
    assert "/" not in component
    assert "\\" not in component
    assert len(component.encode()) < 200
    assert component[0].isalnum()
    assert component == safe_component(name)
    assert component.split(".")[0].casefold() not in ("con", "nul", "com1", "lpt1")


def test_look_alike_names_have_directories_of_their_own() -> None:
    """F04, F07."""
    assert len({folded(safe_component(name)) for name in LOOKALIKES}) == len(LOOKALIKES)


@given(st.text(), st.text())
@example("coder", "Coder")
@example("é", "e\u0301")
@example("a.b", "a/b")
def test_two_names_never_share_a_directory(one: str, other: str) -> None:
    """F04: on no file system, however it folds case or normal forms."""
    try:
        first, second = safe_component(one), safe_component(other)
    except UsageError:
        return
    assert (folded(first) == folded(second)) == (one == other)


@pytest.mark.parametrize("name", ["x\0y", "a\nb", "\x1b[31m", "a\x7f"])
def test_control_characters_in_a_name_are_a_clear_error(name: str) -> None:
    """F04: the NUL case."""
    with pytest.raises(UsageError, match="control character"):
        safe_component(name)


def test_the_readable_part_of_a_name_stays_readable() -> None:
    assert safe_component("Web Scraper").startswith("web-scraper+")
    assert safe_component("规划师").startswith("规划师+")
    component = safe_component("Résumé 한국")
    assert unicodedata.normalize("NFD", component) == component


RESERVED = ["NUL", "nul", "nul.txt", "sub/CON", "COM1", "aux.h", "con .txt", "lpt9.log", "conin$", "sub\\NUL"]
WINDOWS_FORMS = [
    "C:\\Windows\\win.ini",
    "c:foo",
    "\\\\server\\share\\x",
    "//?/C:/x",
    "..\\..\\x",
    "C:/x",
    "\\x",
    "//./pipe/x",
    "a\\..\\..\\x",
    "d:",
]


@pytest.mark.parametrize("path", WINDOWS_FORMS)
def test_windows_paths_are_refused_on_every_system(path: str) -> None:
    """F06: the first five."""
    for rules in ("windows", "posix"):
        with pytest.raises(ToolFailed):
            split_path(path, rules)


@pytest.mark.parametrize(
    "path",
    [*RESERVED, "a.txt:stream", "a.txt::$DATA", "a?b", "a.txt.", "a ", "a|b"],
)
def test_names_that_windows_reserves_are_refused_there_only(path: str) -> None:
    """F06."""
    with pytest.raises(ToolFailed):
        split_path(path, "windows")
    assert split_path(path, "posix") == (False, tuple(path.split("/")))


def test_a_backslash_is_a_separator_on_windows_only() -> None:
    """F06."""
    assert split_path("a\\b.txt", "posix") == (False, ("a\\b.txt",))
    assert split_path("a\\b.txt", "windows") == (False, ("a", "b.txt"))


@pytest.mark.parametrize("path", ["a\0b", "~", "~/x", "a/" * 100, "x" * 5000, "\ud800"])
def test_what_is_no_path_is_refused(path: str) -> None:
    with pytest.raises(ToolFailed):
        split_path(path, "posix")


@pytest.mark.parametrize(
    ("name", "second"),
    [
        ("report.md", "report.v2.md"),
        ("report", "report.v2"),
        (".hidden", ".hidden.v2"),
        ("a.tar.gz", "a.tar.v2.gz"),
        ("报告.md", "报告.v2.md"),
    ],
)
def test_a_version_goes_before_the_suffix(name: str, second: str) -> None:
    assert versioned(name, 1) == name
    assert versioned(name, 2) == second
