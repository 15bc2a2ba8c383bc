"""The size budget: files of at most 400 lines, functions of at most 50 (docstrings not counted)."""

import ast
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "xclaw"
FILE_LINES = 400
FUNCTION_LINES = 50


def _function_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    total = (node.end_lineno or node.lineno) - node.lineno + 1
    first = node.body[0]
    is_docstring = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    if is_docstring:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def test_no_file_is_longer_than_the_budget() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text("utf-8").splitlines())
        for path in SOURCE.rglob("*.py")
    }
    assert {name: n for name, n in lengths.items() if n > FILE_LINES} == {}


def test_no_function_is_longer_than_the_budget() -> None:
    too_long: dict[str, int] = {}
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = _function_lines(node)
                if lines > FUNCTION_LINES:
                    too_long[f"{path.relative_to(SOURCE)}:{node.name}"] = lines
    assert too_long == {}
