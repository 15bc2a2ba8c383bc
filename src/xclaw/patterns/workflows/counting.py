"""How many agents a script starts at most, and which, as far as that can be told without running it."""

import ast
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CALLS = ("agent", "pipeline", "parallel")
_PASSED_THROUGH = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "set"})


@dataclass(frozen=True, slots=True)
class Counted:
    agents: tuple[str, ...] | None
    """None: they are chosen while it runs."""
    most: int | None
    """None: it depends on what happens."""


class _Uncountable(Exception):
    """It cannot be told."""


@dataclass(slots=True)
class _Scope:
    lists: Mapping[str, int]
    """Variables that hold a list of known length."""
    functions: Mapping[str, ast.FunctionDef]
    calling: tuple[str, ...] = ()


def counted(tree: ast.Module) -> Counted:
    """Of a checked script."""
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    scope = _Scope(_lists(tree), functions)
    names = _names(tree)
    if _hidden_calls(tree, functions):
        return Counted(names, None)
    try:
        return Counted(names, _body(tree.body, scope))
    except (_Uncountable, RecursionError):
        return Counted(names, None)


def _lists(tree: ast.Module) -> dict[str, int]:
    """Variables that are given one list, written out, and never touched again."""
    found: dict[str, int] = {}
    written = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    changed = {
        node.value.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    }
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                size = _literal_size(value)
                is_dict = isinstance(value, ast.Dict)
                if size is not None and written.count(name) == 1 and (is_dict or name not in changed):
                    found[name] = size
            case _:
                pass
    return found


def _literal_size(value: ast.expr) -> int | None:
    match value:
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return None if any(isinstance(item, ast.Starred) for item in items) else len(items)
        case ast.Dict(keys=keys):
            return None if None in keys else len(keys)
        case ast.Constant(value=str(text)):
            return len(text)
        case _:
            return None


def _size(value: ast.expr, scope: _Scope) -> int:
    """How often a loop over `value` goes round, at most."""
    match value:
        case ast.Name(id=name) if name in scope.lists:
            return scope.lists[name]
        case ast.Call(func=ast.Name(id="range"), args=[ast.Constant(value=int(stop))]):
            return max(stop, 0)
        case ast.Call(
            func=ast.Name(id="range"), args=[ast.Constant(value=int(start)), ast.Constant(value=int(stop))]
        ):
            return max(stop - start, 0)
        case ast.Call(func=ast.Name(id=name), args=[inner, *_]) if name in _PASSED_THROUGH:
            return _size(inner, scope)
        case ast.Call(func=ast.Attribute(value=inner, attr="items" | "keys" | "values"), args=[]):
            return _size(inner, scope)
        case ast.Call(func=ast.Name(id="zip"), args=[first, *_]):
            return _size(first, scope)
        case ast.Subscript(value=inner, slice=ast.Slice()):
            return _size(inner, scope)
        case _:
            size = _literal_size(value)
            if size is None:
                raise _Uncountable
            return size


def _body(statements: Sequence[ast.stmt], scope: _Scope) -> int:
    return sum(_statement(statement, scope) for statement in statements)


def _statement(node: ast.stmt, scope: _Scope) -> int:
    match node:
        case ast.FunctionDef():
            return sum(_cost(default, scope) for default in node.args.defaults)
        case ast.For():
            inner = _body(node.body, scope)
            times = _size(node.iter, scope) if inner else 0
            return _cost(node.iter, scope) + times * inner + _body(node.orelse, scope)
        case ast.While():
            if _body(node.body, scope) or _cost(node.test, scope):
                raise _Uncountable
            return 0
        case ast.If():
            return _cost(node.test, scope) + max(_body(node.body, scope), _body(node.orelse, scope))
        case ast.Try():
            handlers = sum(_body(handler.body, scope) for handler in node.handlers)
            return (
                _body(node.body, scope) + handlers + _body(node.orelse, scope) + _body(node.finalbody, scope)
            )
        case ast.Match():
            return _cost(node.subject, scope) + sum(_body(case.body, scope) for case in node.cases)
        case _:
            return _parts(node, scope)


def _cost(node: ast.AST, scope: _Scope) -> int:
    match node:
        case ast.Call(func=ast.Name(id=name)):
            return _call(node, name, scope)
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return _comprehension(node.elt, node.generators, scope)
        case ast.DictComp():
            pair = ast.Tuple([node.key, node.value], ast.Load())
            return _comprehension(pair, node.generators, scope)
        case ast.Lambda():
            if _cost(node.body, scope):
                raise _Uncountable
            return 0
        case ast.IfExp():
            return _cost(node.test, scope) + max(_cost(node.body, scope), _cost(node.orelse, scope))
        case _:
            return _parts(node, scope)


def _call(node: ast.Call, name: str, scope: _Scope) -> int:
    match name:
        case "agent":
            return 1 + _parts(node, scope)
        case "pipeline" if node.args:
            return sum(_step_cost(step) for step in _written_out(node.args[0])) + _parts(node, scope)
        case "parallel" if node.args:
            return _parallel(node.args[0], scope) + sum(_cost(word, scope) for word in node.keywords)
        case _ if name in scope.functions:
            if name in scope.calling:
                raise _Uncountable
            inner = _Scope(scope.lists, scope.functions, (*scope.calling, name))
            return _body(scope.functions[name].body, inner) + _parts(node, scope)
        case _:
            return _parts(node, scope)


def _parallel(items: ast.expr, scope: _Scope) -> int:
    """What is in the list runs once each: an item may be a function or a pair."""
    match items:
        case ast.List() | ast.Tuple() | ast.Set():
            return sum(_item(item, scope) for item in items.elts)
        case ast.ListComp(elt=elt, generators=generators) | ast.GeneratorExp(elt=elt, generators=generators):
            if isinstance(elt, ast.Lambda):
                return _comprehension(elt.body, generators, scope)
            if isinstance(elt, ast.Tuple | ast.Dict):
                return _times(generators, scope) * _item(elt, scope)
            return _comprehension(elt, generators, scope)
        case _:
            raise _Uncountable


def _item(item: ast.expr, scope: _Scope) -> int:
    match item:
        case ast.Lambda(body=body):
            return _cost(body, scope)
        case ast.Tuple() | ast.Dict():
            return 1 + _parts(item, scope)
        case ast.Name(id=name) if name in scope.functions:
            return _cost(ast.Call(item, [], []), scope)
        case ast.Name() | ast.Starred():
            raise _Uncountable
        case _:
            return _cost(item, scope)


def _written_out(steps: ast.expr) -> list[ast.expr]:
    if not isinstance(steps, ast.List | ast.Tuple):
        raise _Uncountable
    return steps.elts


def _step_cost(step: ast.expr) -> int:
    """A pair is one agent; a function may be anything."""
    if not isinstance(step, ast.Tuple | ast.Dict):
        raise _Uncountable
    return 1


def _comprehension(element: ast.expr, generators: list[ast.comprehension], scope: _Scope) -> int:
    inner = _cost(element, scope) + sum(
        _cost(condition, scope) for generator in generators for condition in generator.ifs
    )
    outer = sum(_cost(generator.iter, scope) for generator in generators)
    return outer + (inner * _times(generators, scope) if inner else 0)


def _times(generators: list[ast.comprehension], scope: _Scope) -> int:
    times = 1
    for generator in generators:
        times *= _size(generator.iter, scope)
    return times


def _parts(node: ast.AST, scope: _Scope) -> int:
    return sum(
        _statement(child, scope) if isinstance(child, ast.stmt) else _cost(child, scope)
        for child in ast.iter_child_nodes(node)
    )


def _hidden_calls(tree: ast.Module, functions: Mapping[str, ast.FunctionDef]) -> bool:
    """Whether agent() or a function of the script is handed around, so that nobody knows when it is called."""
    plain: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            plain.add(id(node.func))
            if isinstance(node.func, ast.Name) and node.func.id == "parallel":
                plain |= {id(part) for argument in node.args[:1] for part in ast.iter_child_nodes(argument)}
    watched = {*_CALLS, *functions}
    return any(
        isinstance(node, ast.Name)
        and node.id in watched
        and isinstance(node.ctx, ast.Load)
        and id(node) not in plain
        for node in ast.walk(tree)
    )


def _names(tree: ast.Module) -> tuple[str, ...] | None:
    """Every agent that is named as a text in its place; None as soon as one is not."""
    found: list[str] = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        named: list[ast.expr | None] = []
        match node.func.id:
            case "agent":
                named = [_argument(node, "name")]
            case "pipeline" if node.args:
                named = _agents_of(node.args[0], may_be_code=False)
            case "parallel" if node.args:
                named = _agents_of(node.args[0], may_be_code=True)
            case _:
                pass
        for expression in named:
            if not isinstance(expression, ast.Constant) or not isinstance(expression.value, str):
                return None
            found.append(expression.value)
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    hidden = any(
        isinstance(node, ast.Name) and node.id in ("agent", "pipeline") and id(node) not in called
        for node in ast.walk(tree)
    )
    return None if hidden else tuple(dict.fromkeys(found))


def _argument(call: ast.Call, name: str) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((word.value for word in call.keywords if word.arg == name), None)


def _agents_of(items: ast.expr, *, may_be_code: bool) -> list[ast.expr | None]:
    """The agents of pairs and mappings in a list. Anything else is code, whose calls are seen elsewhere,
    or nobody knows."""
    match items:
        case ast.List(elts=elements) | ast.Tuple(elts=elements):
            pass
        case ast.ListComp(elt=element) | ast.GeneratorExp(elt=element):
            elements = [element]
        case _:
            return [None]
    found: list[ast.expr | None] = []
    for element in elements:
        match element:
            case ast.Tuple(elts=[agent, *_]):
                found.append(agent)
            case ast.Dict(keys=keys, values=values):
                named = [
                    value
                    for key, value in zip(keys, values, strict=True)
                    if isinstance(key, ast.Constant) and key.value in ("agent", "name")
                ]
                found.append(named[0] if named else None)
            case ast.Name() | ast.Starred():
                found.append(None)
            case _ if not may_be_code:
                found.append(None)
            case _:
                pass
    return found
