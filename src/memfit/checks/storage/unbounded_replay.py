"""MF116: a replay never forgets.

What: transitions are added to a list, or to a deque without `maxlen`, samples are drawn from it,
and nothing is ever taken out.

Why: it grows with every step of the run, until the kernel ends it. A deque with `maxlen`, or an
array written in a ring, stays at its size.

Bad:
    import random

    memory = []
    for step in range(1_000_000):
        memory.append((state, action, reward))
        batch = random.sample(memory, 32)

Good:
    import random
    from collections import deque

    memory = deque(maxlen=100_000)
    for step in range(1_000_000):
        memory.append((state, action, reward))
        batch = random.sample(memory, 32)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import (
    Arguments,
    Source,
    dotted,
    in_package,
    is_emptied,
    last_name,
    loops_around,
    methods,
)

CODE = "MF116"
SEVERITY = Severity.WARNING
FOUND = (
    "import random\nm = []\ndef f():\n    m.append((s, a))\n    return random.sample(m, 9)\n",
    (
        "import random\nfrom collections import deque\n"
        "class Agent:\n    def act(self, s):\n        return 0\n"
        "    def __init__(self):\n        self.items = deque()\n"
        "    def push(self, x):\n        self.items.append(x)\n"
        "    def sample(self, n):\n        return random.sample(self.items, n)\n"
    ),
)
CLEAN = (
    (
        "import random\nclass Memory:\n    def __init__(self):\n        self.items = []\n"
        "    def push(self, x):\n        if len(self.items) < self.size:\n"
        "            self.items.append(None)\n        self.items[self.at] = x\n"
        "    def sample(self, n):\n        return random.sample(self.items, n)\n"
    ),
    (
        "import random\nxs = []\nfor f in files:\n    xs.append(f)\n"
        "part = random.sample(xs, 3)\nxs.clear()\n"
    ),
    (
        "import random\nfor task in range(9):\n    data = []\n    for i in range(50):\n"
        "        data.append((s, a))\n    batch = random.sample(data, 5)\n"
    ),
)


def find_in_source(source: Source) -> Iterator[Spot]:
    sampled = {
        (dotted(c.args[0]), _home(source, c.args[0])): c
        for c in source.nodes(ast.Call)
        if in_package(source, c.func, ("random",), ("sample", "choices")) and c.args
    }
    for name, home in sampled:
        made = [
            n
            for n in source.nodes(ast.Assign)
            if name and name in map(dotted, n.targets) and _home(source, n.targets[0]) is home
        ]
        if len(made) != 1 or not _without_end(made[0].value):
            continue
        if any(loops_around(source, made[0])):  # begun anew each time round
            continue
        owner = source.class_of(made[0])
        if owner is not None and not _acts(owner):  # how long a container lives is not known
            continue
        around = home
        if _grows(source, around, name) and not is_emptied(around, name):
            yield Spot(made[0], f"{name} grows with every step", "collections.deque(maxlen=...)")


def _home(source: Source, node: ast.AST) -> ast.AST:
    """Whose name it is: that of a class's instances, of a function, or of the script."""
    if isinstance(node, ast.Name):
        found = source.bindings(node)
        return source.scope(found[0].node) if found else source.scope(node)
    return source.class_of(node) or source.scope(node)


def _acts(owner: ast.ClassDef) -> bool:
    """Whether a class is an agent: it lives as long as the training."""
    return any(word in name for name in methods(owner) for word in ("act", "choose", "predict"))


def _without_end(value: ast.expr) -> bool:
    if isinstance(value, ast.List):
        return not value.elts
    named = isinstance(value, ast.Call) and last_name(value.func) in ("deque", "list")
    return named and isinstance(value, ast.Call) and Arguments(value).lacks("maxlen", 1)


def _grows(source: Source, root: ast.AST, name: str) -> bool:
    """Whether a tuple or an object is added; not where that depends on how many there are."""
    for n in ast.walk(root):
        if isinstance(n, ast.Attribute) and n.attr == "append" and dotted(n.value) == name:
            tests = [a.test for a in source.ancestors(n) if isinstance(a, ast.If | ast.While)]
            inside = source.function(n) is not None or any(
                isinstance(a, ast.For | ast.While) for a in source.ancestors(n)
            )
            if inside and not any(last_name(t) == "len" for x in tests for t in ast.walk(x)):
                return True
    return False
