"""Exact integer sizes as expressions over named knobs.

A `Size` is built with ordinary operators (`+ - * //`) and with `ceil_div`, `maximum`, `minimum` and
`between_readings`. It evaluates to an exact integer and prints as the formula a person would write.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

Knobs = Mapping[str, int]
Points = tuple[tuple[int, int], ...]

# How tightly each operation binds when printed; atoms bind tightest.
_BINDS = {"+": 1, "-": 1, "*": 2, "//": 2}
_ATOM = 3


@dataclass(frozen=True)
class Size:
    """An integer expression: a constant, a knob, an operation on two sizes, or what was read."""

    op: str
    value: int = 0
    name: str = ""
    left: Size | None = None
    right: Size | None = None
    points: Points = ()

    def __add__(self, other: Size | int) -> Size:
        return _binary("+", self, size(other))

    def __radd__(self, other: int) -> Size:
        return _binary("+", size(other), self)

    def __sub__(self, other: Size | int) -> Size:
        return _binary("-", self, size(other))

    def __rsub__(self, other: int) -> Size:
        return _binary("-", size(other), self)

    def __mul__(self, other: Size | int) -> Size:
        return _binary("*", self, size(other))

    def __rmul__(self, other: int) -> Size:
        return _binary("*", size(other), self)

    def __floordiv__(self, other: Size | int) -> Size:
        return _binary("//", self, size(other))

    @property
    def is_const(self) -> bool:
        return self.op == "const"

    @cached_property
    def knobs(self) -> frozenset[str]:
        """The names this size depends on."""
        if self.op == "knob":
            return frozenset({self.name})
        parts = (part.knobs for part in (self.left, self.right) if part is not None)
        return frozenset().union(*parts)

    def evaluate(self, knobs: Knobs) -> int:
        """The exact number of bytes (or elements) for these knob values."""
        if self.op == "const":
            return self.value
        if self.op == "knob":
            return knobs[self.name]
        assert self.left is not None
        if self.op == "read":
            return read_between(self.points, self.left.evaluate(knobs))
        assert self.right is not None
        return _APPLY[self.op](self.left.evaluate(knobs), self.right.evaluate(knobs))

    @cached_property
    def source(self) -> str:
        """This size as a Python expression over `k`, a mapping of knobs; for `compile_sizes`."""
        if self.op == "const":
            return f"({self.value})" if self.value < 0 else str(self.value)
        if self.op == "knob":
            return f"k[{self.name!r}]"
        assert self.left is not None
        if self.op == "read":
            return f"read_between({self.points!r}, {self.left.source})"
        assert self.right is not None
        a, b = self.left.source, self.right.source
        if self.op in ("max", "min"):
            return f"{self.op}({a}, {b})"
        if self.op == "ceil":
            return f"(-(-({a}) // ({b})))"
        # Brackets on the right keep the tree of a long sum flat; on the left only where needed,
        # because Python allows 200 levels of them.
        left = _bracket(self.left, a, _BINDS[self.op])
        return f"{left} {self.op} {_bracket(self.right, b, _ATOM)}"

    def __str__(self) -> str:
        if self.op == "const":
            return f"{self.value:,}"
        if self.op == "knob":
            return self.name
        assert self.left is not None
        if self.op == "read":
            readings = "; ".join(f"{at:,}: {value:,}" for at, value in self.points)
            return f"readings({self.name or self.left}; {readings})"
        assert self.right is not None
        if self.op in ("max", "min"):
            return f"{self.op}({self.left}, {self.right})"
        if self.op == "ceil":
            left = _bracket(self.left, str(self.left), _BINDS["//"])
            return f"ceil({left} / {_bracket(self.right, str(self.right), _ATOM)})"
        binds = _BINDS[self.op]
        # a - (b + c) and a // (b * c) need their brackets; a + (b + c) does not.
        tighter = binds + (self.op in ("-", "//") or self.right.op == "//")
        left = _bracket(self.left, str(self.left), binds)
        return f"{left} {self.op} {_bracket(self.right, str(self.right), tighter)}"


def _bracket(inner: Size, text: str, binds: int) -> str:
    return f"({text})" if _BINDS.get(inner.op, _ATOM) < binds else text


_APPLY: dict[str, Callable[[int, int], int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "ceil": lambda a, b: -(-a // b),
    "max": max,
    "min": min,
}


def _binary(op: str, left: Size, right: Size) -> Size:
    if left.is_const and right.is_const:
        return const(_APPLY[op](left.value, right.value))
    if op in ("+", "-") and right == _ZERO:
        return left
    if op == "+" and left == _ZERO:
        return right
    if op in ("+", "-") and right.is_const and right.value < 0:  # a - 3 reads better than a + -3
        return Size("-" if op == "+" else "+", left=left, right=const(-right.value))
    if op == "*":
        if _ZERO in (left, right):
            return _ZERO
        if left == _ONE:
            return right
        if right == _ONE:
            return left
        if left.is_const:  # n_steps * 4 reads better than 4 * n_steps, and constants fold
            left, right = right, left
        if right.is_const and left.op == "*" and left.right is not None and left.right.is_const:
            assert left.left is not None
            return _binary("*", left.left, const(left.right.value * right.value))
    if op in ("//", "ceil") and right == _ONE:
        return left
    if op in ("max", "min") and left == right:
        return left
    return Size(op, left=left, right=right)


def const(value: int) -> Size:
    """A fixed number of bytes."""
    return Size("const", value=int(value))


def knob(name: str) -> Size:
    """A named setting of the run, such as `n_envs`."""
    return Size("knob", name=name)


def size(value: Size | int | str) -> Size:
    """Read an integer as a constant and a name as a knob."""
    if isinstance(value, Size):
        return value
    return knob(value) if isinstance(value, str) else const(value)


def ceil_div(a: Size | int, b: Size | int) -> Size:
    """`a / b`, rounded up."""
    return _binary("ceil", size(a), size(b))


def maximum(a: Size | int, b: Size | int) -> Size:
    """The larger of two sizes."""
    return _binary("max", size(a), size(b))


def minimum(a: Size | int, b: Size | int) -> Size:
    """The smaller of two sizes."""
    return _binary("min", size(a), size(b))


def between_readings(by: Size, readings: Mapping[int, int], name: str = "") -> Size:
    """What was read at some values of a size, and lies on straight lines between them.

    The formula calls that size by its `name`, which is shorter where it is a sum of many. Before
    the first reading it is in proportion to the size; beyond the last one the line goes on where it
    rises, and stays where it falls.
    """
    points = tuple(sorted(readings.items()))
    if len({value for _, value in points}) == 1:
        return const(points[0][1])
    if by.is_const:
        return const(read_between(points, by.value))
    return Size("read", name=name, left=by, points=points)


def read_between(points: Points, at: int) -> int:
    """The value at one place of what `between_readings` describes."""
    (first, at_first), (last, at_last) = points[0], points[-1]
    if at < first:
        return at_first * at // first
    if len(points) == 1:
        return at_first
    end = min(max(1, bisect(points, at, key=lambda point: point[0])), len(points) - 1)
    (low, at_low), (high, at_high) = points[end - 1 : end + 1]
    line = at_low + (at_high - at_low) * (at - low) // (high - low)
    return max(line, at_last) if at > last else line


def total(sizes: Iterable[Size]) -> Size:
    """The sum of many sizes, added in pairs so that a ledger of any length nests only a little."""
    parts = list(sizes)
    fixed = const(sum(p.value for p in parts if p.is_const))
    parts = [p for p in parts if not p.is_const]
    while len(parts) > 1:
        parts = [
            _binary("+", *parts[i : i + 2]) if parts[i + 1 :] else parts[i]
            for i in range(0, len(parts), 2)
        ]
    return parts[0] + fixed if parts else fixed


_ZERO = const(0)
_ONE = const(1)


def compile_sizes(sizes: Mapping[str, Size]) -> Callable[[Knobs], dict[str, int]]:
    """Turn named sizes into one fast function from knob values to integers."""
    body = ", ".join(f"{name!r}: {s.source}" for name, s in sizes.items())
    known = {"read_between": read_between}
    function: Callable[[Knobs], dict[str, int]] = eval(f"lambda k: {{{body}}}", known)
    return function
