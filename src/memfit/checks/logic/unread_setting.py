"""MF308: a setting that nothing reads.

What: an option of argparse, or a constant in capitals at the head of a script, that nothing in the
script reads.

Why: whoever turns it, to save memory say, turns nothing: `worker_num` of a run that has no workers.

Bad:
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--workers", type=int, default=4)
    args = parser.parse_args()
    train(args.envs)

Good:
    import argparse

    parser = argparse.ArgumentParser()
    parser.add_argument("--envs", type=int, default=8)
    args = parser.parse_args()
    train(args.envs)
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from memfit.checks.spot import Spot
from memfit.model import Severity
from memfit.syntax import Source, constant, keyword, last_name

CODE = "MF308"
SEVERITY = Severity.INFO
FOUND = (
    (
        "N_ENVS = 8\nUNUSED = 3\nfrom stable_baselines3 import PPO\n"
        "model = PPO('MlpPolicy', make(N_ENVS))\nmodel.learn(9)\n"
    ),
)
CLEAN = (
    (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--envs')\n"
        "args = p.parse_args()\nmain(**vars(args))\n"
    ),
    "N_ENVS = 8\nUNUSED = 3\n",
)


def find_in_source(source: Source) -> Iterator[Spot]:
    for call, name in _unread_options(source):
        yield Spot(call, f"nothing reads the option {name}", "leave it out, or use it")
    runs = any(_trains(source, c) for c in source.nodes(ast.Call)) and not _exports(source)
    for name in source.names_in(source.tree) if runs else []:
        bindings = source.bindings_in(source.tree, name)
        value = bindings[0].value
        if not name.isupper() or len(bindings) != 1 or not isinstance(value, ast.Constant):
            continue
        if not source.loads(name):
            yield Spot(bindings[0].node, f"nothing reads {name}", "leave it out, or use it")


def _unread_options(source: Source) -> Iterator[tuple[ast.Call, str]]:
    parsed = _parsed(source)
    if parsed is None:
        return
    uses = source.loads(parsed)
    attributes = [source.parent(n) for n in uses]
    read = {a.attr for a in attributes if isinstance(a, ast.Attribute)}
    if not all(isinstance(a, ast.Attribute) for a in attributes) or not read:
        return  # it is handed on as a whole
    options = [c for c in source.nodes(ast.Call) if last_name(c.func) == "add_argument"]
    if 2 * len(read) < len(options):  # most of them are read in other files
        return
    for call in options:
        if call.args:
            words = [str(constant(source, a) or "") for a in call.args]
            long = next((w for w in words if w.startswith("--")), words[0])
            name = str(
                constant(source, keyword(call, "dest")) or long.lstrip("-").replace("-", "_")
            )
            action = str(constant(source, keyword(call, "action")) or "")
            if name and name not in read and action not in ("version", "help"):
                yield call, long


def _parsed(source: Source) -> str | None:
    """The name of the only thing that is parsed, in a file that has all of its readers."""
    made = [
        n.targets[0].id
        for n in source.nodes(ast.Assign)
        if isinstance(n.targets[0], ast.Name)
        and isinstance(n.value, ast.Call)
        and last_name(n.value.func) == "parse_args"
    ]
    returned = any(
        isinstance(n.value, ast.Name) and n.value.id in made for n in source.nodes(ast.Return)
    )
    given = any(
        isinstance(n.value, ast.Call) and last_name(n.value.func) == "parse_args"
        for n in source.nodes(ast.Return)
    )
    return made[0] if len(made) == 1 and not returned and not given else None


def _trains(source: Source, call: ast.Call) -> bool:
    """Whether a call trains as the file is run: other files import nothing of such a script."""
    return last_name(call.func) in ("learn", "backward") and source.scope(call) is source.tree


def _exports(source: Source) -> bool:
    """Whether its names may be read elsewhere: by their text, or by another file."""
    named = any(last_name(c.func) in ("globals", "locals", "vars") for c in source.nodes(ast.Call))
    return named or any(n.id == "__all__" for n in source.nodes(ast.Name))
