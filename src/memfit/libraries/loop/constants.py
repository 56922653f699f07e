"""Where a program's text gives its settings values, and the same program with other values.

These are whole numbers: constants of modules, functions and classes, defaults of parameters, of
options and of fields, entries of dictionaries, attributes that are set once.
"""

from __future__ import annotations

import ast
import operator
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

_LARGEST = 10**12
_LEAST_FLOAT = 1000  # 1e6 is a count, 1.0 a rate
_POWER = 64
_OPERATIONS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
    ast.LShift: operator.lshift,
    ast.Pow: operator.pow,
}
# Calls that declare an option, whose names are among their arguments, as argparse, click, absl.
_OPTIONS = ("add_argument", "option", "argument", "Option", "Argument", "DEFINE_integer")
_FIELDS = ("field", "Field", "ib", "attrib", "Option", "Argument")
_MAKERS = ("dict", "SimpleNamespace", "Namespace", "ConfigDict", "create", "replace", "update")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_COMPOUND = (*_FUNCTIONS, ast.ClassDef, ast.If, ast.With, ast.Try)
_ENVIRONMENT = ("environ", "getenv")


def whole_number(value: Any) -> int | None:
    """A value as a setting: a whole number above zero, None for anything else."""
    if type(value) is float and value.is_integer() and value >= _LEAST_FLOAT:
        value = int(value)
    return value if type(value) is int and 1 <= value <= _LARGEST else None


class _Kind(Enum):
    """What gets a value; a weak one counts where the text has no other."""

    VARIABLE = "a variable of a module, a function or a class"
    PART = "a part of something: a parameter, an entry, an attribute, an option"
    WEAK = "an argument of a function of somebody else's"


@dataclass(frozen=True)
class _Place:
    """Where a name gets a value: in a field of a node of the tree, or in an entry of that field."""

    name: str
    node: ast.AST
    field: str
    at: int | None = None
    kind: _Kind = _Kind.PART

    def change(self, value: int) -> None:
        new = ast.Constant(value)
        if self.at is None:
            setattr(self.node, self.field, new)
        else:
            getattr(self.node, self.field)[self.at] = new


def settable(text: bytes | str) -> dict[str, bool]:
    """The settings that a text gives values to, and whether a variable of that name is one."""
    tree = _parsed(text)
    assigned = Counter(_stored_names(tree))
    places = list(_places(tree))
    given = Counter(p.name for p in places if p.kind is _Kind.VARIABLE)
    found: dict[str, bool] = {}
    for place in places:
        plain = place.kind is not _Kind.WEAK and assigned[place.name] <= given[place.name]
        found[place.name] = found.get(place.name, False) or plain
    return found


def set_values(tree: ast.Module, knobs: Mapping[str, int]) -> None:
    """Give the settings of a text these values."""
    places = [place for place in _places(tree) if place.name in knobs]
    strong = {place.name for place in places if place.kind is not _Kind.WEAK}
    for place in places:
        if place.kind is not _Kind.WEAK or place.name not in strong:
            place.change(knobs[place.name])
    ast.fix_missing_locations(tree)


def _parsed(text: bytes | str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


# -- places ----------------------------------------------------------------------------------------


def _places(tree: ast.Module) -> Iterator[_Place]:
    signatures = dict(_signatures(tree))
    counted = _counted_up(tree)
    yield from _set_once(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _assignments(node, counted)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _defaults(node.args)
        elif isinstance(node, ast.Dict):
            for at, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
                if isinstance(key, ast.Constant) and _is_number(value):
                    yield _Place(str(key.value), node, "values", at)
        elif isinstance(node, ast.Call):
            yield from _of_call(node, signatures)


def _assignments(scope: Any, counted: set[str]) -> Iterator[_Place]:
    """Variables that a scope gives a value once, and not in a loop."""
    statements = list(_own_statements(scope.body))
    plain = (s for s in statements if not isinstance(s, _COMPOUND))
    times = Counter(name for statement in plain for name in _stored_names(statement))
    for statement in statements:
        if not isinstance(statement, ast.Assign | ast.AnnAssign) or statement.value is None:
            continue
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        given = [(target, _inside(statement, "value")) for target in targets]
        given += [(part, (value, "elts", at)) for part, value, at in _unpacked(statement)]
        for target, inner in given:
            if not isinstance(target, ast.Name) or times[target.id] > 1 or target.id in counted:
                continue
            if inner is not None:
                yield _Place(target.id, *inner, kind=_Kind.VARIABLE)


def _unpacked(
    statement: ast.Assign | ast.AnnAssign,
) -> Iterator[tuple[ast.expr, ast.Tuple | ast.List, int]]:
    """The targets of `a, b = 1, 2` that get a number, and where that is."""
    value = statement.value
    if not isinstance(statement, ast.Assign) or not isinstance(value, ast.Tuple | ast.List):
        return
    for target in statement.targets:
        if not isinstance(target, ast.Tuple | ast.List) or len(target.elts) != len(value.elts):
            continue
        if any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts)):
            continue
        for at, (part, number) in enumerate(zip(target.elts, value.elts, strict=True)):
            if _is_number(number) or _is_of_environment(number):
                yield part, value, at


def _inside(node: Any, field: str) -> tuple[ast.AST, str, int | None] | None:
    """Where the number is in a value: itself, or the default in a call that makes a field of it."""
    value = getattr(node, field)
    if _is_number(value) or _is_of_environment(value):
        return node, field, None
    if isinstance(value, ast.Call) and _called(value) in _FIELDS:
        for keyword in value.keywords:
            if keyword.arg == "default" and _is_number(keyword.value):
                return keyword, "value", None
        if _is_first(value):
            return value, "args", 0
    return None


def _defaults(arguments: ast.arguments) -> Iterator[_Place]:
    positional = [*arguments.posonlyargs, *arguments.args]
    named = positional[len(positional) - len(arguments.defaults) :]
    for at, (parameter, value) in enumerate(zip(named, arguments.defaults, strict=True)):
        yield from _default(parameter.arg, arguments, "defaults", at, value)
    for at, (parameter, other) in enumerate(
        zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    ):
        yield from _default(parameter.arg, arguments, "kw_defaults", at, other)


def _default(
    name: str, arguments: ast.arguments, field: str, at: int, value: ast.expr | None
) -> Iterator[_Place]:
    if _is_number(value):
        yield _Place(name, arguments, field, at)
    elif isinstance(value, ast.Call) and _called(value) in _FIELDS and _is_first(value):
        yield _Place(name, value, "args", 0)


def _is_first(call: ast.Call) -> bool:
    return bool(call.args) and _is_number(call.args[0])


def _of_call(call: ast.Call, signatures: Mapping[str, list[str]]) -> Iterator[_Place]:
    called = _called(call)
    if called in _OPTIONS:
        yield from _of_option(call)
    if called in (*_OPTIONS, *_FIELDS):
        return
    own = called in signatures or called in _MAKERS
    for keyword in call.keywords:
        if keyword.arg and _is_number(keyword.value):
            yield _Place(keyword.arg, keyword, "value", kind=_Kind.PART if own else _Kind.WEAK)
    for at, (name, value) in enumerate(zip(signatures.get(called, ()), call.args, strict=False)):
        if _is_number(value):
            yield _Place(name, call, "args", at)


def _of_option(call: ast.Call) -> Iterator[_Place]:
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and type(a.value) is str]
    keywords = {keyword.arg: keyword for keyword in call.keywords}
    dest = keywords.get("dest")
    if dest is not None and isinstance(dest.value, ast.Constant):
        texts = [str(dest.value.value)]
    texts = [word for word in texts if word.startswith("--")] or texts
    names = [word.lstrip("-").split("/")[0].replace("-", "_") for word in texts]
    names = [name for name in names if name.isidentifier()]
    default = keywords.get("default")
    at = next((i for i, a in enumerate(call.args) if _is_number(a)), None)
    for name in names[:1] if _called(call) == "DEFINE_integer" else names:
        if default is not None and _is_number(default.value):
            yield _Place(name, default, "value")
        elif at is not None:
            yield _Place(name, call, "args", at)
        elif default is None:  # given on the command line alone
            yield _Place(name, ast.Expr(ast.Constant(0)), "value")


def _signatures(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    """The functions and classes of a text, and the names of what they are called with."""
    for node in ast.walk(tree):
        if isinstance(node, _FUNCTIONS):
            yield node.name, [argument.arg for argument in node.args.args]
        elif isinstance(node, ast.ClassDef):
            made = [f for f in node.body if isinstance(f, _FUNCTIONS) and f.name == "__init__"]
            fields = [s.target for s in node.body if isinstance(s, ast.AnnAssign)]
            names = [target.id for target in fields if isinstance(target, ast.Name)]
            yield node.name, [a.arg for a in made[0].args.args[1:]] if made else names


# -- what a value is -------------------------------------------------------------------------------


def _is_number(node: ast.expr | None) -> bool:
    return whole_number(_value(node)) is not None


def _value(node: ast.expr | None) -> Any:
    """The number that an expression of constants alone is, None where it is none."""
    if isinstance(node, ast.Constant):
        return node.value if type(node.value) in (int, float) else None
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATIONS:
        left, right = _value(node.left), _value(node.right)
        if left is None or right is None:
            return None
        if isinstance(node.op, ast.Pow | ast.LShift) and not 0 <= right <= _POWER:
            return None
        try:
            return _OPERATIONS[type(node.op)](left, right)
        except (ArithmeticError, TypeError, ValueError):
            return None
    if isinstance(node, ast.Call) and _called(node) == "int" and len(node.args) == 1:
        inner = _value(node.args[0])
        return None if inner is None else int(inner)
    return None


def _is_of_environment(node: ast.expr | None) -> bool:
    """Whether a value is read from an environment variable as a whole number."""
    if not (isinstance(node, ast.Call) and _called(node) == "int"):
        return False
    names = (getattr(n, "attr", getattr(n, "id", "")) for n in ast.walk(node))
    return any(name in _ENVIRONMENT for name in names)


def _called(call: ast.Call) -> str:
    return str(getattr(call.func, "attr", getattr(call.func, "id", "")))


def _attribute_or_entry(target: ast.expr) -> str:
    if isinstance(target, ast.Attribute):
        return target.attr
    if isinstance(target, ast.Subscript) and isinstance(target.slice, ast.Constant):
        return str(target.slice.value)
    return ""


def _counted_up(tree: ast.Module) -> set[str]:
    """Variables that are counted up, or set from within functions."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            found.add(node.target.id)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
    return found


def _set_once(tree: ast.Module) -> Iterator[_Place]:
    """Attributes and entries that get one value alone, by the object of a class or a variable."""
    times: Counter[str] = Counter()
    places: dict[str, _Place] = {}
    for owner, node in _with_class(tree, ""):
        if isinstance(node, ast.AugAssign):
            times[f"{owner} {ast.unparse(node.target)}"] += 2
        elif isinstance(node, ast.Assign):
            parts = {ast.unparse(part): (value, at) for part, value, at in _unpacked(node)}
            for target in _flat(node.targets):
                name, text = _attribute_or_entry(target), ast.unparse(target)
                key = f"{owner} {text}" if name else ""
                times[key] += 1
                if text in parts:
                    value, at = parts[text]
                    places[key] = _Place(name, value, "elts", at)
                elif node.targets == [target] and _is_number(node.value):
                    places[key] = _Place(name, node, "value")
    yield from (found for key, found in places.items() if key and times[key] == 1)


def _flat(targets: list[ast.expr]) -> Iterator[ast.expr]:
    for target in targets:
        if isinstance(target, ast.Tuple | ast.List):
            yield from _flat(target.elts)
        else:
            yield target


def _with_class(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.AST]]:
    """All nodes below one, with the class that they are in."""
    for child in ast.iter_child_nodes(node):
        yield owner, child
        yield from _with_class(child, child.name if isinstance(child, ast.ClassDef) else owner)


def _own_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a scope, those below `if`, `with` and `try` too, not those of loops."""
    for statement in body:
        yield statement
        if isinstance(statement, ast.If | ast.With | ast.Try):
            for name in ("body", "orelse", "finalbody"):
                yield from _own_statements(getattr(statement, name, []))


def _stored_names(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
