"""Names, constants, calls and places of small texts, by known answers."""

from __future__ import annotations

import ast

import pytest

from memfit.syntax import (
    Arguments,
    Source,
    argument,
    calls,
    classes_with_base,
    constant,
    dotted,
    in_step_loop,
    is_assigned,
    is_emptied,
    keyword,
    last_name,
    loops_around,
    number,
    origin,
    origins,
    self_attributes,
    under_with,
)


def called(text: str, name: str) -> tuple[Source, ast.Call]:
    """A text, and its only call of a function of that name."""
    source = Source(text)
    (call,) = (c for c in source.nodes(ast.Call) if last_name(c.func) == name)
    return source, call


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import numpy as np\nnp.zeros(3)", "numpy.zeros"),
        ("import numpy\nnumpy.zeros(3)", "numpy.zeros"),
        ("from numpy import zeros as z\nz(3)", "numpy.zeros"),
        ("import torch.nn as nn\nnn.Linear(1, 2)", "torch.nn.Linear"),
        ("import torch.nn\ntorch.nn.Linear(1, 2)", "torch.nn.Linear"),
        ("def f():\n    from torch import optim\n    return optim.Adam(x)", "torch.optim.Adam"),
        ("from torch import optim\nmake = optim.Adam\nmake(x)", "torch.optim.Adam"),
        ("try:\n    import cv2\nexcept ImportError:\n    pass\ncv2.resize(x)", "cv2.resize"),
        # What is a name of its own, or may be, is no import.
        ("import numpy as np\ndef f(np):\n    np.zeros(3)", ""),
        ("import numpy as np\nnp = fake()\nnp.zeros(3)", ""),
        ("from numpy import *\nzeros(3)", ""),
        ("zeros(3)", ""),
        ("class A:\n    import numpy as np\n    def f(self):\n        np.zeros(3)", ""),
        ("from .networks import Adam\nAdam(3)", ".networks.Adam"),
    ],
)
def test_names_are_followed_to_their_import(text: str, name: str) -> None:
    source = Source(text)
    last = source.nodes(ast.Call)[-1]
    assert source.qualified(last.func) == name


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f(3)", 3),
        ("f(-2)", -2),
        ("f(2 ** 10 * 3 // 2)", 1536),
        ("N = 8\nf(N * 128)", 1024),
        ("def g():\n    n = 4\n    f(n)", 4),
        ("f(int(1e6))", 1_000_000),
        ("f(1e6)", 1_000_000),
        ('config = {"n": 7}\nf(config["n"])', 7),
        ("a, b = 3, 4\nf(b)", 4),
        ("N: int = 5\nf(N)", 5),
        # What may be something else is unknown.
        ("N = 8\nN = 9\nf(N)", None),
        ("N = 8\nN += 1\nf(N)", None),
        ("def g(n=4):\n    f(n)", None),
        ("for n in range(3):\n    f(n)", None),
        ("f(args.n)", None),
        ("f(1 // 0)", None),
        ("f(2.5)", None),
        ("f(True)", None),
        ("n = n\nf(n)", None),
        ("f(10 ** 10 ** 10)", None),
    ],
)
def test_numbers_that_are_always_the_same(text: str, value: int | None) -> None:
    source, call = called(text, "f")
    assert number(source, call.args[0]) == value


def test_words_and_origins() -> None:
    source, call = called("kind = 'Cnn'\nf(kind)", "f")
    assert constant(source, call.args[0]) == "Cnn"
    found = origin(source, call.args[0])
    assert isinstance(found, ast.Constant)
    source, call = called("env = make()\nenv = wrap(env)\nf(env)", "f")
    assert isinstance(origin(source, call.args[0]), ast.Name)
    assert [ast.unparse(o) for o in origins(source, call.args[0])] == ["make()", "wrap(env)"]


def test_calls_of_a_package_whatever_they_are_called() -> None:
    text = (
        "from stable_baselines3 import PPO as P\nimport stable_baselines3.ppo as s\n"
        "P(1)\ns.PPO(2)\nPPO(3)\nother.PPO(4)\n"
    )
    found = calls(Source(text), ("stable_baselines3",), ("PPO",))
    assert [ast.unparse(call) for call in found] == ["P(1)", "s.PPO(2)"]


def test_arguments_by_name_and_place() -> None:
    _, call = called("f(1, b=2)", "f")
    assert ast.unparse(argument(call, "a", 0) or call) == "1"
    assert ast.unparse(argument(call, "b", 1) or call) == "2"
    assert argument(call, "c", 2) is None and keyword(call, "a") is None
    assert Arguments(call).lacks("c", 2) and not Arguments(call).lacks("b", 1)
    _, hidden = called("f(*rest, **more)", "f")
    assert argument(hidden, "a", 0) is None and not Arguments(hidden).lacks("a", 0)


def test_loops_are_those_in_whose_body_a_node_stands() -> None:
    source, call = called("for i in a:\n    while b:\n        f(i)", "f")
    assert [type(loop) for loop in loops_around(source, call)] == [ast.While, ast.For]
    for text in ("for i in f(a):\n    pass", "for i in a:\n    def g():\n        f(i)"):
        source, call = called(text, "f")
        assert list(loops_around(source, call)) == []


@pytest.mark.parametrize(
    ("text", "steps"),
    [
        ("for i in a:\n    f()\n    env.step(x)", True),
        ("while True:\n    f()\n    if c:\n        self.envs.step(x)", True),
        ("for i in a:\n    f()\n    optimizer.step(x)", False),
        ("for i in a:\n    f()\n    env.step()", False),
        ("f()\nenv.step(x)", False),
    ],
)
def test_loops_that_step_an_env(text: str, steps: bool) -> None:
    source, call = called(text, "f")
    assert in_step_loop(source, call) is steps


@pytest.mark.parametrize(
    ("text", "under"),
    [
        ("with torch.no_grad():\n    f()", True),
        ("@torch.no_grad()\ndef g():\n    f()", True),
        ("with open(x), no_grad():\n    f()", True),
        ("with torch.no_grad():\n    pass\nf()", False),
        ("@torch.no_grad()\ndef g():\n    def h():\n        f()", False),
    ],
)
def test_what_stands_under_no_grad(text: str, under: bool) -> None:
    assert under_with(*called(text, "f"), "no_grad") is under


def test_what_a_class_does_with_its_attributes() -> None:
    source = Source(
        "class A(gym.Env):\n    def __init__(self):\n        self.x = []\n        self.y = 0\n"
        "    def step(self, a):\n        self.x.append(a)\n        self.x[0] = a\n"
        "        self.y += 1\n        return self.x[1]\nclass B(A):\n    pass\nclass C:\n    pass\n"
    )
    assert [c.name for c in classes_with_base(source, "Env")] == ["A", "B"]
    found = self_attributes(source, source.nodes(ast.ClassDef)[0])
    x, y = found["x"], found["y"]
    assert [m.name for m, _ in x.stores] == ["__init__"]
    assert [m.name for m, _ in x.writes] == ["step", "step"]
    assert [m.name for m, _ in x.reads] == ["step"]
    assert [m.name for m, _ in y.stores] == ["__init__", "step"] and len(y.reads) == 1


def test_what_is_emptied_and_assigned() -> None:
    tree = ast.parse("self.x.clear()\ny[0] = 1\nz = w.pop\nv = u[0]")
    assert [n for n in ("self.x", "x", "y", "z", "w", "u", "v") if is_emptied(tree, n)] == [
        "self.x",
        "y",
        "w",
    ]
    assert is_assigned(tree, "z") and is_assigned(tree, "v", "q") and not is_assigned(tree, "y")


def test_names_are_written_with_dots() -> None:
    assert dotted(ast.parse("a.b.c", mode="eval").body) == "a.b.c"
    assert dotted(ast.parse("a().b", mode="eval").body) == ""


def test_where_a_scopes_own_names_are_read() -> None:
    source = Source("x = 1\ndef f():\n    return x\ndef g(x):\n    return x\n")
    assert [n.lineno for n in source.loads_of(source.tree, "x")] == [3]
    assert [n.lineno for n in source.loads("x")] == [3, 5]
