"""Arrays that a text makes: with which shape, dtype and fill."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from memfit.syntax import Source, argument, constant, in_package, last_name, number

_PLACES = {"zeros": 1, "ones": 1, "empty": 1, "full": 2}
BUFFER = re.compile(r"buffer|replay|memory|rollout|storage", re.IGNORECASE)
OBSERVATION = re.compile(r"(^|_)(obs|observations?|states?|frames?|images?)($|_|\d)", re.IGNORECASE)


@dataclass(frozen=True)
class Made:
    """A call of zeros, ones, empty or full, of numpy or torch."""

    source: Source
    call: ast.Call
    library: str
    how: str

    @property
    def dims(self) -> list[ast.expr]:
        """The dimensions as they are written."""
        shape = argument(self.call, "shape", 0) or argument(self.call, "size", 0)
        if isinstance(shape, ast.Tuple | ast.List):
            return list(shape.elts)
        if self.library == "torch" and self.how != "full":
            return list(self.call.args)
        return [] if shape is None else [shape]

    @property
    def dtype(self) -> str:
        """The dtype, that of the library if none is given; empty if it cannot be told."""
        place = _PLACES[self.how] if self.library in ("numpy", "jax") else None
        given = argument(self.call, "dtype", place)
        if given is None:
            if self.how == "full" or any(k.arg is None for k in self.call.keywords):
                return ""
            return "float64" if self.library == "numpy" else "float32"
        return dtype_name(self.source, given)

    @property
    def target(self) -> str:
        """The last name of what it is given to."""
        above = self.source.parent(self.call)
        while isinstance(above, ast.Attribute | ast.Call):  # torch.zeros(...).to(device)
            above = self.source.parent(above)
        if isinstance(above, ast.Assign):
            return last_name(above.targets[0])
        return last_name(above.target) if isinstance(above, ast.AnnAssign) else ""

    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether any name in the shape looks like this."""
        shape = argument(self.call, "shape", 0) or argument(self.call, "size", 0)
        parts = [shape, *self.dims] if shape is not None else self.dims
        names = (last_name(n) for part in parts for n in ast.walk(part))
        return any(pattern.search(name) for name in names if name)

    @property
    def count(self) -> int | None:
        """How many elements, where all dimensions are known."""
        total = 1
        for dim in self.dims:
            value = number(self.source, dim)
            if value is None:
                return None
            total *= value
        return total if self.dims else None


def made_arrays(source: Source, root: ast.AST | None = None) -> Iterator[Made]:
    """The arrays that a file, or a part of it, makes."""
    for call in source.nodes(ast.Call) if root is None else ast.walk(root):
        if isinstance(call, ast.Call) and last_name(call.func) in _PLACES:
            for library in ("numpy", "torch"):
                if in_package(source, call.func, (library,), _PLACES):
                    yield Made(source, call, library, last_name(call.func))


def dtype_name(source: Source, node: ast.AST) -> str:
    """The name of a dtype: `np.float32`, `torch.float`, `"uint8"`, `float`; empty if unknown."""
    value = constant(source, node)
    if isinstance(value, str):
        return value
    if isinstance(node, ast.Name) and node.id == "float" and not source.bindings(node):
        return "float64"
    name = source.qualified(node)
    last = name.split(".")[-1]
    if name.startswith("torch.") and last == "float":
        return "float32"
    return {"double": "float64", "float_": "float64", "single": "float32"}.get(last, last)


def scales_images(source: Source) -> bool:
    """Whether anything is divided by 255, as networks do with pixels."""
    return any(
        isinstance(node.op, ast.Div)
        and isinstance(node.right, ast.Constant)
        and node.right.value in (255, 255.0)
        for node in source.nodes(ast.BinOp)
    )
