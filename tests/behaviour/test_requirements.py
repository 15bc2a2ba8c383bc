"""The table of requirements and the tests agree, both ways."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from requirements import BEGUN, PROMISED

TESTS = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"(?<![\w-])[A-K][1-9](?![\w-])")
"""Ids of requirements have one digit; those of fault cases have two."""


def docstrings(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield ast.get_docstring(node) or ""


def named() -> dict[str, set[str]]:
    """The ids that docstrings of tests name, with the files that do."""
    found: dict[str, set[str]] = {}
    for path in TESTS.rglob("test_*.py"):
        for text in docstrings(path):
            for requirement in REQUIREMENT.findall(text):
                found.setdefault(requirement, set()).add(str(path.relative_to(TESTS)))
    return found


def test_every_promise_is_covered_by_a_test_that_names_it() -> None:
    covered = named()
    assert sorted((PROMISED.keys() | BEGUN.keys()) - covered.keys()) == []


def test_no_test_names_a_requirement_that_is_not_promised() -> None:
    known = PROMISED.keys() | BEGUN.keys()
    assert {name: files for name, files in named().items() if name not in known} == {}


def test_the_table_is_in_order_and_names_each_once() -> None:
    assert list(PROMISED) == sorted(PROMISED)
    assert list(BEGUN) == sorted(BEGUN)
    assert PROMISED.keys() & BEGUN.keys() == set()
