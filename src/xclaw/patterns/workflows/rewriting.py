"""From a checked script to what runs: its output is caught, and what parallel() is given is not run early.

`parallel([agent("a", x) for x in xs])` reads as if the agents ran at once, but Python would run each before
the list is there. So what stands in the list is put off, each with the loop's value as it was then.
"""

import ast
from typing import TypeVar

LAST = "_last"
FINISH = "_finish"
"""Names that no script can write itself."""

Node = TypeVar("Node", bound=ast.AST)


def rewritten(tree: ast.Module) -> ast.Module:
    """The module to run. Owns the tree from now on."""
    tree = _Returns().visit(_Rewriter().visit(tree))
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = tree.body[-1]
        tree.body[-1] = ast.copy_location(ast.Assign([ast.Name(LAST, ast.Store())], last.value), last)
    return ast.fix_missing_locations(tree)


class _Rewriter(ast.NodeTransformer):
    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self.generic_visit(node)
        node.returns = None
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.annotation = None
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        self.generic_visit(node)
        if node.value is None:
            return ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.Assign([node.target], node.value), node)

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        # Only annotations need it, and they are gone.
        return ast.copy_location(ast.Pass(), node) if node.module == "typing" else node

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.AST:
        self.generic_visit(node)
        if node.type is None:
            node.type = ast.Name("Exception", ast.Load())
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "parallel" and node.args:
            node.args[0] = _put_off(node.args[0])
        return node


class _Returns(ast.NodeTransformer):
    """A `return` outside functions ends the script."""

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node

    def visit_Return(self, node: ast.Return) -> ast.AST:
        value = node.value or ast.Constant(None)
        return ast.copy_location(ast.Expr(ast.Call(ast.Name(FINISH, ast.Load()), [value], [])), node)


def _put_off(items: ast.expr) -> ast.expr:
    match items:
        case ast.List() | ast.Tuple() | ast.Set():
            items.elts = [_thunk(item, []) for item in items.elts]
        case ast.ListComp() | ast.GeneratorExp():
            items.elt = _thunk(items.elt, _targets(items.generators))
        case _:
            pass
    return items


def _targets(generators: list[ast.comprehension]) -> list[str]:
    return [
        node.id
        for generator in generators
        for node in ast.walk(generator.target)
        if isinstance(node, ast.Name)
    ]


def _thunk(item: ast.expr, names: list[str]) -> ast.expr:
    """A function of nothing that gives the item, with these names as they are now."""
    if isinstance(item, ast.Lambda):
        own = {arg.arg for arg in (*item.args.posonlyargs, *item.args.args, *item.args.kwonlyargs)}
        _bind(item.args, [name for name in names if name not in own])
        return item
    parts = list(ast.walk(item))
    if isinstance(item, ast.Starred) or not any(isinstance(part, ast.Call) for part in parts):
        return item
    if any(isinstance(part, ast.NamedExpr | ast.Yield | ast.YieldFrom) for part in parts):
        return item
    arguments = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    _bind(arguments, names)
    return ast.copy_location(ast.Lambda(arguments, item), item)


def _bind(arguments: ast.arguments, names: list[str]) -> None:
    for name in dict.fromkeys(names):
        arguments.kwonlyargs.append(ast.arg(name))
        arguments.kw_defaults.append(ast.Name(name, ast.Load()))
