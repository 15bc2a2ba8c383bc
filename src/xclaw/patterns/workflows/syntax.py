"""What a workflow script may say, checked before it runs (standard library only: it is used in the
interpreter that the script runs in).

The language is what is listed here and no more. Nothing that begins with an underscore can be named, so
that no object leads to another one's insides.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

FUNCTIONS = frozenset({"agent", "parallel", "pipeline", "phase", "log", "print"})
"""What a script may call beside Python's own; none can be given another meaning."""
MODULES = frozenset({"collections", "functools", "itertools", "json", "math", "re", "textwrap", "typing"})
MAX_NODES = 20_000

_GRAMMAR = """Module Expr Assign AugAssign AnnAssign For While If Raise Try ExceptHandler Assert Import ImportFrom
    alias Pass Break Continue Return FunctionDef arguments arg Global Nonlocal Delete BoolOp NamedExpr BinOp
    UnaryOp Lambda IfExp Dict Set ListComp SetComp DictComp GeneratorExp comprehension Yield YieldFrom
    Compare Call keyword FormattedValue JoinedStr Constant Attribute Subscript Starred Name List Tuple Slice
    Load Store Del And Or Not Invert UAdd USub Add Sub Mult Div FloorDiv Mod Pow LShift RShift BitAnd BitOr
    BitXor MatMult Eq NotEq Lt LtE Gt GtE Is IsNot In NotIn Match match_case MatchValue MatchSingleton
    MatchSequence MatchMapping MatchStar MatchAs MatchOr"""
_NODES = frozenset(_GRAMMAR.split())
_HINTS = {
    "Await": "`await` is not needed: agent() waits by itself, and parallel([...]) runs several at once",
    "AsyncFunctionDef": "write `def`: agent() waits by itself, and parallel([...]) runs several at once",
    "ClassDef": "a workflow has no classes; use functions and dicts",
    "With": "a workflow has no `with`: there is nothing to open",
}
_ATTRIBUTES = frozenset({"format", "format_map", "mro", "with_traceback"})
_PREFIXES = ("_", "gi_", "cr_", "ag_", "f_", "tb_", "co_", "func_")


@dataclass(frozen=True, slots=True)
class Refused(Exception):
    """The script says what it may not; `text` is for whoever wrote it."""

    line: int
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}" if self.line else self.text


def parsed(source: str) -> ast.Module:
    """The script's tree. Raises `Refused`."""
    try:
        tree = ast.parse(source, "workflow.py")
    except SyntaxError as error:
        raise Refused(error.lineno or 0, f"syntax error: {error.msg}") from None
    except (ValueError, RecursionError, MemoryError) as error:
        raise Refused(0, f"it cannot be read: {type(error).__name__}, {str(error)[:100]}") from None
    try:
        _check(tree)
    except RecursionError:
        raise Refused(0, "it is nested too deeply") from None
    return tree


def _check(tree: ast.Module) -> None:
    for count, node in enumerate(ast.walk(tree)):
        line = getattr(node, "lineno", 0)
        name = type(node).__name__
        if count >= MAX_NODES:
            raise Refused(0, f"it is too long: more than {MAX_NODES} parts")
        if name not in _NODES:
            raise Refused(line, _HINTS.get(name, f"a workflow cannot use {name}"))
        for identifier in _identifiers(node):
            _check_name(identifier, line)
        _check_node(node, line)


def _check_node(node: ast.AST, line: int) -> None:
    match node:
        case ast.Attribute(attr=attr, ctx=ctx):
            _check_attribute(attr, line)
            if not isinstance(ctx, ast.Load):
                raise Refused(line, f"attributes such as .{attr} cannot be changed; use variables")
        case ast.Name(id=name, ctx=ctx) if name in FUNCTIONS and not isinstance(ctx, ast.Load):
            raise Refused(line, f"{name} is a function of the workflow; use another name")
        case ast.FunctionDef(name=name) | ast.arg(arg=name) if name in FUNCTIONS:
            raise Refused(line, f"{name} is a function of the workflow; use another name")
        case ast.FunctionDef(decorator_list=[_, *_]):
            raise Refused(line, "a workflow has no decorators")
        case ast.Import(names=names):
            for alias in names:
                _check_module(alias.name, line)
        case ast.ImportFrom(module=module, level=level, names=names):
            _check_module(module if module and not level else ".", line)
            if any(alias.name == "*" for alias in names):
                raise Refused(line, "name what you import instead of *")
        case _:
            pass


def _check_module(name: str, line: int) -> None:
    if name not in MODULES:
        raise Refused(line, f"{name} cannot be imported; there are {', '.join(sorted(MODULES))}")


def _check_name(name: str, line: int) -> None:
    if name.startswith("_") and name != "_":
        raise Refused(line, f"{name[:60]} begins with an underscore, which no name in a workflow may")
    if "__" in name:
        raise Refused(line, f"{name[:60]} has two underscores in a row, which no name in a workflow may")


def _check_attribute(name: str, line: int) -> None:
    if name in ("format", "format_map"):
        raise Refused(line, f'.{name}() is not there; write f"...{{value}}..."')
    if name in _ATTRIBUTES or name.startswith(_PREFIXES):
        raise Refused(line, f".{name[:60]} is not there in a workflow")


def _identifiers(node: ast.AST) -> Iterator[str]:
    """Every name that a node gives or uses."""
    for field in ("id", "attr", "arg", "name", "asname", "rest"):
        value = getattr(node, field, None)
        if isinstance(value, str):
            yield value
    if isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
