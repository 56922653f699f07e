"""MF502: the same frame is converted twice.

What: one function calls the same conversion (`cvtColor`, `resize`, `array3d` ...) with the same
arguments more than once, and nothing has changed them in between.

Why: each call makes a whole new frame, and the work is done again. The first result can be used for
both.

Bad:
    import cv2

    def observe(frame):
        near = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)[:84, :84]
        far = cv2.resize(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), (84, 84))
        return near, far

Good:
    import cv2

    def observe(frame):
        grey = cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY)
        return grey[:84, :84], cv2.resize(grey, (84, 84))
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, last_name

CODE = "MF502"
SEVERITY = Severity.WARNING
CLEAN = (
    (
        "import cv2\ndef f(a):\n    if a.x:\n        return cv2.resize(a, (8, 8))\n"
        "    return cv2.resize(a, (8, 8))\n"
    ),
    (
        "import cv2\ndef f(a):\n    b = cv2.resize(a, (8, 8))\n    a = next()\n"
        "    return b, cv2.resize(a, (8, 8))\n"
    ),
    (
        "import cv2\ndef f(env):\n    b = cv2.resize(env.render(), (8, 8))\n"
        "    return b, cv2.resize(env.render(), (8, 8))\n"
    ),
)
_CONVERSIONS = {"cvtColor", "resize", "array3d", "pixels3d", "array2d", "rgb2gray"}


def find_in_source(source: Source) -> Iterator[Spot]:
    for function in source.nodes(ast.FunctionDef):
        seen: dict[str, ast.Call] = {}
        for call in source.nodes(ast.Call):
            if last_name(call.func) not in _CONVERSIONS or source.function(call) is not function:
                continue
            if not call.args or _calls_inside(call):
                continue
            text = ast.dump(call)
            first = seen.setdefault(text, call)
            if first is not call and _sure(source, function, first, call):
                yield Spot(
                    call,
                    f"{source.segment(call)} was made in line {first.lineno} already",
                    "use the first result",
                )


def _calls_inside(call: ast.Call) -> bool:
    parts = [*call.args, *(k.value for k in call.keywords)]
    return any(isinstance(n, ast.Call) for part in parts for n in ast.walk(part))


def _sure(source: Source, function: ast.AST, first: ast.Call, second: ast.Call) -> bool:
    """Whether both are always done, one after the other, on the same thing."""
    blocks = [
        {
            id(a)
            for a in source.ancestors(c)
            if isinstance(a, ast.If | ast.For | ast.While | ast.Try)
        }
        for c in (first, second)
    ]
    names = {n.id for a in second.args for n in ast.walk(a) if isinstance(n, ast.Name)}
    changed = any(
        isinstance(n, ast.Name)
        and n.id in names
        and isinstance(n.ctx, ast.Store)
        and first.lineno <= n.lineno <= second.lineno
        for n in ast.walk(function)
    )
    return blocks[0] == blocks[1] and not changed and not _written(function, names, first, second)


def _written(function: ast.AST, names: set[str], first: ast.Call, second: ast.Call) -> bool:
    """Whether something may have changed what it is made of: a method or a function got it."""
    for n in ast.walk(function):
        line = getattr(n, "lineno", 0)
        if isinstance(n, ast.Call) and first.lineno < line < second.lineno:
            inner = [n.func, *n.args]
            if any(isinstance(m, ast.Name) and m.id in names for x in inner for m in ast.walk(x)):
                return True
    return False
