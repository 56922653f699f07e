"""The phases of the walk: the run's variables, then libraries, then what nothing reaches."""

from __future__ import annotations

import _thread
import functools
import gc
import itertools
import operator
import sys
from typing import Any

from .array_blocks import torch_quiet  # noqa: TID252 - also loaded by path, under another name
from .local_variables import is_memfits, local_variables  # noqa: TID252
from .module_owners import PYTHON, Home, is_run_file  # noqa: TID252
from .object_kinds import DATA, package_of, variables_of  # noqa: TID252
from .pace import Pace  # noqa: TID252
from .paths import Node  # noqa: TID252
from .seen_addresses import MASK, PIECE  # noqa: TID252
from .walk import Queue, Walk, code_parts  # noqa: TID252

_BATCH = 64
_OFTEN = 255  # of so many things, give way after the last
_MOST_TRACKED = 1_500_000  # reading the collector's list of more holds up the target for long
# Types of values in modules that a run's object may have without reaching into the library.
_UNSHARED = ("function", "class", "module", "leaf", "code", *DATA, "skip")


class WholeWalk(Walk):
    """A walk over the whole process."""

    def __init__(self, pace: Pace, roles: dict[str, str] | None = None) -> None:
        super().__init__(pace, roles)
        self.stacks: dict[str, list[Any]] = {}
        self.complete = True

    def run(self, *, variables_only: bool = False) -> None:
        """Find everything, or only what the run's own variables hold."""
        with torch_quiet():
            self.know_shared()
            calls, selves, library_calls = self.calls()
            code: Queue = []
            globals_, modules = self.variables(code)
            self.levels([], globals_, [*modules, *calls], selves, code)
            del globals_, modules, calls, selves, code
            while self.later:
                later, self.later = self.later, []
                self.levels([], later)
            self.own_classes()
            self.levels([], library_calls)
            del library_calls
            if variables_only:
                return
            self.libraries()
            self.unreached()

    def know_shared(self) -> None:
        """Note what libraries have in their modules: the run uses it, but does not hold it."""
        for home in self.homes.values():
            self.pace.rest()
            if not home.run:
                for value in list(home.variables.values()):
                    if self.kinds[type(value)].form not in _UNSHARED:
                        self.shared.add(id(value))

    def variables(self, code: Queue) -> tuple[Queue, Queue]:
        """The variables of the main module, and of the run's other modules."""
        main: Queue = []
        others: Queue = []
        for home in self.homes.values():
            if not home.run:
                continue
            self.seen.add(id(home.variables))
            prefix = "" if home.name == "__main__" else f"{home.name}."
            for name, value in list(home.variables.items()):
                if type(name) is not str or (name.startswith("__") and name.endswith("__")):
                    continue
                form = self.kinds[type(value)].form
                if form == "module":
                    continue
                if form in ("function", "class"):
                    code.append((value, self.tree.top(f"{prefix}{name}")))
                else:
                    roots = others if prefix else main
                    roots.append((value, self.tree.top(f"{prefix}{name}")))
        return main, others

    def calls(self) -> tuple[Queue, Queue, Queue]:
        """The variables of running functions: the run's, its methods' `self`, and libraries'."""
        own: Queue = []
        selves: Queue = []
        libraries: Queue = []
        frames = sys._current_frames()
        # Our own frame, in a variable of its own, would keep everything here alive.
        frames.pop(_thread.get_ident(), None)
        for frame in frames.values():
            stack: list[Any] = []
            step: Any = frame
            while step is not None:
                stack.append(step)
                step = step.f_back
            while stack:  # the outermost first: what it lends to others is its own
                step = stack.pop()
                if is_memfits(step):
                    continue
                code = step.f_code
                runs = is_run_file(code.co_filename)
                called = f"{code.co_qualname.rpartition('.<locals>.')[2]}()"
                for name, value in local_variables(step):
                    if name in ("self", "cls"):  # what only its own methods name
                        kind = self.kinds[type(value)]
                        model = kind.role == "algorithm"
                        roots = own if model else selves if runs else libraries
                        roots.append((value, self.tree.top("model" if model else kind.name)))
                    else:
                        roots = own if runs else libraries
                        top = self.tree.top(called, kind="run")
                        roots.append((value, self.tree.child(top, f".{name}")))
        return own, selves, libraries

    def libraries(self) -> None:
        """Count what the modules of each package hold."""
        for home in self.homes.values():
            self.stacks.setdefault(home.package, []).append(home.module)
        tops = {home.package: home.run for home in self.homes.values()}
        for package in sorted(self.stacks, key=lambda p: (p == PYTHON, tops.get(p, False))):
            for module in self.stacks[package]:
                self.seen.add(id(module))
        while any(self.stacks.values()):
            for package, stack in list(self.stacks.items()):
                if stack:
                    self.sweep(stack, package, self.tree.top(package, kind="package"))

    def sweep(self, stack: list[Any], package: str, node: Node) -> None:
        """Count everything that hangs below these things and belongs to no other package."""
        kinds, known, rest = self.kinds, self.known, self.pace.rest
        pieces, new_piece = self.seen.pieces, self.seen.piece
        while stack:
            batch = stack[-_BATCH:]
            del stack[-_BATCH:]
            for number, thing in enumerate(gc.get_referents(*batch)):
                if not number & _OFTEN:
                    rest()
                address = id(thing)  # the next lines are SeenAddresses.add(), millions of times
                piece = pieces.get(address >> PIECE)
                if piece is None:
                    piece = new_piece(address >> PIECE)
                at = (address >> 4) & MASK
                if piece[at]:
                    continue
                piece[at] = 1
                kind = known.get(id(type(thing))) or kinds[type(thing)]
                form = kind.form
                if form == "leaf":
                    self.count(thing, kind, node)
                    continue
                owner, to = node, stack
                if form in ("function", "class", "module"):
                    other = self.package(thing, form)
                    if other and other != package:
                        owner = self.tree.top(other, kind="package")
                        to = self.stacks.setdefault(other, [])
                self.count(thing, kind, owner)
                if form in DATA:
                    to.extend(self.blocks.data(form, thing, owner, self.seen))
                elif form == "code":
                    self.whole_code(thing, owner)
                elif form != "skip":
                    to.append(thing)
            del batch

    def whole_code(self, thing: Any, node: Node) -> None:
        """A code object with its tables and constants, which the collector does not know."""
        waiting = [thing]
        while waiting:
            code = waiting.pop()
            # The names of its variables cannot be read without leaving a copy behind.
            node.small += 96 + 9 * code.co_nlocals
            parts = list(code_parts(code))
            while parts:
                part = parts.pop()
                if self.seen.add(id(part)):
                    kind = self.kinds[type(part)]
                    self.count(part, kind, node)
                    if kind.form == "code":
                        waiting.append(part)
                    elif type(part) is tuple or type(part) is frozenset:
                        parts.extend(part)

    def package(self, thing: Any, form: str) -> str:
        """The package of a function, class or module; nothing where it cannot be told."""
        if form == "module":
            name = variables_of(thing).get("__name__")
            return Home(name, thing).package if type(name) is str else ""
        home = self.home(thing, form)
        return home.package if home is not None else ""

    def unreached(self) -> None:
        """Count what only the collector knows: held by C code alone, or waiting to be collected."""
        self.skip_own()
        if self.objects > _MOST_TRACKED:
            self.complete = False
            return
        self.pace.rest()
        tracked = _tracked()
        self.pace.rest()
        skip = {id(tracked)}
        while tracked:
            thing = tracked.pop()
            if not len(tracked) & _OFTEN:
                self.pace.rest()
            kind = self.kinds[type(thing)]
            if id(thing) in skip or kind.form == "skip" or not self.seen.add(id(thing)):
                continue
            if kind.form == "tensor" and not self.blocks.gradients.python_owns_tensors:
                continue
            package = package_of(type(thing))
            package = PYTHON if package in ("", "builtins") else package
            top = self.tree.top(package, kind="unreached")
            self.count(thing, kind, top)
            if kind.form == "code":
                self.whole_code(thing, top)
            elif kind.form in DATA:
                self.blocks.data(kind.form, thing, top, self.seen)
            elif kind.holds:
                self.sweep([thing], package, top)

    def forget(self) -> None:
        """Let go of everything at once: the target may never collect cycles."""
        for node in self.tree.all():
            node.parent = None
            node.small_arrays = None
            node.layouts = {}
            node.children = {}

    def skip_own(self) -> None:
        """Do not count the walk's own notes."""
        stack: list[Any] = [self]
        stack.append(stack)
        self.seen.add(id(self))
        while stack:
            self.pace.rest()
            for thing in gc.get_referents(stack.pop()):
                form = self.kinds[type(thing)].form
                if form not in ("module", "class", "function") and self.seen.add(id(thing)):
                    stack.append(thing)


class _Collector:
    """What the garbage collector tracks, read as an attribute: that is no call."""

    get_objects = staticmethod(gc.get_objects)
    objects = property(operator.methodcaller("get_objects"))


def _tracked() -> list[Any]:
    """Everything that the garbage collector tracks, but no tuples.

    C code may be filling a tuple while it waits for what goes into it, and fails if there is a
    second reference to it by then. So tuples are let go of before any other thread can run, which
    is after calls and jumps: between the list and what is left of it there is neither.
    """
    collector = _Collector()
    found: list[Any] = []
    others = itertools.compress(
        found, map(functools.partial(operator.is_not, tuple), map(type, found))
    )
    collects = gc.isenabled()
    gc.disable()  # to collect would run code of the target
    found += collector.objects
    found[:] = others
    if collects:
        gc.enable()
    return found
