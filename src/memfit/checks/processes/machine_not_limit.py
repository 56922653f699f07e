"""MF405: what is free is asked of the machine, and not of the limit.

What: a size is chosen by `psutil.virtual_memory()` or the number of physical pages.

Why: in a container, a batch job or a pod, the limit is that of the cgroup, and the machine has many
times as much. What is chosen so is ended by the kernel as soon as it is used.

Bad:
    import psutil

    capacity = psutil.virtual_memory().available // bytes_of_a_step

Good:
    from memfit.units import parse_bytes

    capacity = parse_bytes("16GiB") // bytes_of_a_step
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, calls, origin

CODE = "MF405"
SEVERITY = Severity.INFO
CLEAN = (
    "import psutil\nprint(psutil.virtual_memory().percent)\n",
    "import psutil\nused.append(psutil.virtual_memory().used)\n",
)
_AMOUNTS = ("total", "available", "free")


def find_in_source(source: Source) -> Iterator[Spot]:
    for node in source.nodes(ast.Attribute):
        if node.attr not in _AMOUNTS:
            continue
        read = origin(source, node.value)
        if not isinstance(read, ast.Call) or read not in set(
            calls(source, ("psutil",), ("virtual_memory",))
        ):
            continue
        if _decides(source, node):
            yield Spot(
                node,
                f"virtual_memory().{node.attr} is the machine's, whatever the limit is",
                "the smaller of it and /sys/fs/cgroup/memory.max",
            )


def _decides(source: Source, node: ast.AST) -> bool:
    """Whether a size follows from it: it is divided by bytes or compared, and not only shown."""
    for above in source.ancestors(node):
        if isinstance(above, ast.Compare):
            return True
        if isinstance(above, ast.BinOp) and isinstance(above.op, ast.FloorDiv):
            return True
        if isinstance(above, ast.Call | ast.stmt | ast.JoinedStr):
            return False
    return False
