"""Walks over everything that Python holds, and counts each object for its holder.

Nothing of the target is called: attributes are read from where they are stored, containers by the
methods of the built-in types, everything else by what the garbage collector knows.
"""

from __future__ import annotations

import gc
import sys
import types
from typing import Any

from . import paths  # noqa: TID252 - also loaded by path, under another name
from .array_blocks import ArrayBlocks  # noqa: TID252
from .local_variables import local_variables  # noqa: TID252
from .module_owners import Home, homes  # noqa: TID252
from .object_kinds import (  # noqa: TID252
    DATA,
    Kinds,
    ObjectKind,
    instance_dict,
    is_one_of,
    module_of,
    own_names,
    slots_of,
)
from .pace import Pace  # noqa: TID252
from .paths import Node, Tree  # noqa: TID252
from .seen_addresses import SeenAddresses  # noqa: TID252

_SMALL = 512  # what Python's own allocator takes
_LONG = 512  # containers from here on are walked at once, element by element
_PART = 256
_NESTED = 20
_LAYOUTS = 8
_ATTRIBUTES = "\0attributes"
_PLAIN = (int, float, bool, str, bytes, type(None), types.BuiltinFunctionType)
Queue = list[tuple[Any, Node]]


class Walk:
    """What was found: a tree of holders, and the memory blocks of arrays and tensors."""

    def __init__(self, pace: Pace, roles: dict[str, str] | None = None) -> None:
        self.pace = pace
        self.kinds = Kinds(roles)
        self.known = self.kinds.known
        self.tree = Tree()
        self.blocks = ArrayBlocks(self.kinds, self.tree)
        self.seen = SeenAddresses()
        self.homes = homes(pace.rest)
        self.shared = SeenAddresses()  # what libraries have in their modules: not the run's
        self.later: Queue = []
        self.classes: list[type] = []  # the run's, named by themselves once all objects are known
        self.naming_classes = False
        self.objects = 0
        self.nested = 0
        self.named: set[str] = set()

    def enter(self, thing: Any, node: Node, out: Queue) -> None:
        """Count an object for its holder, once, and queue it if there may be more inside."""
        kind = self.known.get(id(type(thing))) or self.kinds[type(thing)]
        form = kind.form
        address = id(thing)
        if form == "leaf":
            if self.seen.add(address):
                self.count(thing, kind, node)
            return
        if address in self.shared or form in ("module", "skip"):
            return
        if form in ("function", "class") and not self.is_runs(thing, form):
            return
        if form == "class" and not self.naming_classes:
            self.classes.append(thing)
            return
        if not self.seen.add(address):
            if form in DATA:
                self.blocks.again(address, node)
            return
        self.count(thing, kind, node)
        if form in DATA:
            out.extend((inner, node) for inner in self.blocks.data(form, thing, node, self.seen))
        elif kind.holds:
            out.append((thing, node))

    def count(self, thing: Any, kind: ObjectKind, node: Node) -> None:
        size = kind.size(thing)
        if size > _SMALL:
            node.large += size
        else:
            node.small += size
        node.objects += 1
        self.objects += 1

    def is_runs(self, thing: Any, form: str) -> bool:
        """Whether a function or class is the run's own; closures may hold the run's data."""
        home = self.home(thing, form)
        if form == "function":
            return home is None or home.run or thing.__closure__ is not None
        return home is not None and home.run

    def home(self, thing: Any, form: str) -> Home | None:
        """The module of a function or class, where that is loaded."""
        if form == "function":
            return self.homes.get(id(thing.__globals__))
        module = sys.modules.get(module_of(thing))
        return self.homes.get(id(module.__dict__)) if type(module) is types.ModuleType else None

    def levels(self, level: Queue, *later_roots: Queue) -> None:
        """Breadth first, so that the shortest way to a thing names it."""
        waiting = list(later_roots)
        while level or waiting:
            out: Queue = []
            for at, (thing, node) in enumerate(level):
                self.look(thing, node, out)
                level[at] = (None, node)  # let go of it
                self.pace.rest()
            if waiting:
                for thing, node in waiting.pop(0):
                    self.enter(thing, node, out)
            level = out

    def own_classes(self) -> None:
        """Count the run's classes for themselves, not for the objects that are of them."""
        self.naming_classes = True
        while self.classes:
            found, self.classes = self.classes, []
            roots: Queue = []
            for thing in found:
                if id(thing) not in self.seen:
                    module = module_of(thing)
                    prefix = "" if module == "__main__" else f"{module}."
                    roots.append((thing, self.tree.top(f"{prefix}{self.kinds[thing].name}")))
            self.levels([], roots)
        self.naming_classes = False

    def look(self, thing: Any, node: Node, out: Queue) -> None:
        """Go one step into a thing."""
        kind = self.known.get(id(type(thing))) or self.kinds[type(thing)]
        form = kind.form
        try:
            if form in ("array", "map"):  # a base that another array looks into
                self.enter(thing, node, out)
            elif form == "dict":
                self.mapping(thing, node, out)
                if kind.type is not dict:
                    self.attributes_of(thing, node, kind, out, container=True)
            elif form == "list":
                self.sequence(thing, node, kind, out)
                if kind.type is not list and kind.type is not tuple:
                    self.attributes_of(thing, node, kind, out, container=True)
            elif form == "function":
                self.function(thing, node, out)
            elif form == "class":
                self.attributes(own_names(thing), node, kind, out)
            elif form == "code":
                for value in code_parts(thing):
                    self.enter(value, node, out)
            elif form == "generator":
                self.generator(thing, node, out)
            elif form == "object":
                self.attributes_of(thing, node, kind, out)
            elif kind.holds:
                self.elements(gc.get_referents(thing), node, form == "set", out)
        except (RuntimeError, AttributeError, TypeError, ValueError, IndexError):
            return  # it changed under the walk, or is not as its type says

    def mapping(self, thing: dict[Any, Any], node: Node, out: Queue) -> None:
        among = dict.__len__(thing)
        node.elements = max(node.elements, among)
        if among > _LONG:
            self.elements(gc.get_referents(thing), node, True, out)
            return
        for name, value in _items(thing):
            self.enter(value, self.tree.child(node, paths.key(name, among=among)), out)
            self.enter(name, node, out)

    def sequence(self, thing: Any, node: Node, kind: ObjectKind, out: Queue) -> None:
        base: Any = list if id(list) in kind.ancestors else tuple
        among = base.__len__(thing)
        node.elements = max(node.elements, among)
        fields = own_names(kind.type).get("_fields") if base is tuple else None
        if type(fields) is tuple and len(fields) == among:
            for name, value in zip(fields, base.__getitem__(thing, slice(None)), strict=False):
                self.enter(value, self.tree.child(node, paths.attribute(name)), out)
        elif among <= 8:
            for at, value in enumerate(base.__getitem__(thing, slice(None))):
                self.enter(value, self.tree.child(node, f"[{at}]", indexed=True), out)
        else:
            for at in range(0, among, _PART):
                part = base.__getitem__(thing, slice(at, at + _PART))
                self.elements(part, node, True, out, at_once=among > _LONG)

    def elements(
        self, things: Any, node: Node, many: bool, out: Queue, at_once: bool | None = None
    ) -> None:
        """Things without names; those of a long container are walked here and now."""
        below = self.tree.child(node, paths.ANY) if many else node
        at_once = len(things) > _LONG if at_once is None else at_once
        if many:
            node.elements = max(node.elements, len(things))
        if not at_once or self.nested >= _NESTED:
            for thing in things:
                self.enter(thing, below, out)
                self.pace.rest()
            return
        self.nested += 1
        inner: Queue = []
        for thing in things:
            self.enter(thing, below, inner)
            self.pace.rest()
            while inner:
                self.look(*inner.pop(), inner)
                self.pace.rest()
        self.nested -= 1

    def function(self, thing: types.FunctionType, node: Node, out: Queue) -> None:
        home = self.home(thing, "function")
        names = thing.__code__.co_freevars
        for name, cell in zip(names, thing.__closure__ or (), strict=False):
            if self.seen.add(id(cell)):
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue
                self.enter(value, self.tree.child(node, f".{name}"), out)
        inner: list[Any] = [thing.__defaults__, thing.__kwdefaults__, thing.__name__]
        if home is None or home.run:
            inner.append(thing.__code__)
        for value in inner:
            self.enter(value, node, out)

    def generator(self, thing: Any, node: Node, out: Queue) -> None:
        frame = thing.gi_frame
        if frame is None:
            return
        below = self.tree.child(node, f" {frame.f_code.co_name}()")
        for name, value in local_variables(frame):
            self.enter(value, self.tree.child(below, f".{name}"), out)
        for value in gc.get_referents(thing):
            self.enter(value, below, out)

    def attributes_of(
        self, thing: Any, node: Node, kind: ObjectKind, out: Queue, *, container: bool = False
    ) -> None:
        """An object's attributes, where its class lets them be known by name."""
        if kind.role:
            self.role(node, kind)
        # The elements of a container were looked at.
        beside = self.beside_elements(thing, node, kind) if container else None
        held = gc.get_referents(thing) if beside is None else beside
        layout = node.layouts.get((id(kind.type), len(held)))
        if layout is None:
            if len(node.layouts) >= _LAYOUTS:
                layout = [None] * len(held)
            else:
                layout = _layout(thing, held)
                node.layouts[id(kind.type), len(held)] = layout
        for value, step in zip(held, layout, strict=True):
            if step is _ATTRIBUTES and type(value) is dict:
                if self.seen.add(id(value)):
                    self.count(value, self.kinds[dict], node)
                    self.attributes(value, node, kind, out)
            else:
                self.attribute(step, value, node, kind, out)

    def beside_elements(self, thing: Any, node: Node, kind: ObjectKind) -> list[Any]:
        """The attributes of a container of the run's own type; of a few such ones a holder."""
        looked = node.layouts.setdefault((id(kind.type), -1), [])
        if len(looked) >= _LAYOUTS:
            return []
        looked.append(None)
        attributes = instance_dict(thing)
        return [] if attributes is None else [attributes]

    def attributes(self, names: Any, node: Node, kind: ObjectKind, out: Queue) -> None:
        for name, value in _items(names):
            self.attribute(name, value, node, kind, out)

    def attribute(self, name: Any, value: Any, node: Node, kind: ObjectKind, out: Queue) -> None:
        role = kind.role if type(name) is str else ""  # other names compare as they like
        if name is None:
            self.enter(value, node, out)
            return
        if role == "optimizer" and name in ("state", "param_groups"):
            if name == "state" and self.kinds[type(value)].form == "dict":
                self.optimizer_state(value, node, out)
            else:
                self.later.append((value, self.tree.child(node, f".{name}")))
            return
        silent = (
            (role == "wrapper" and name == "env")
            or (role == "vector wrapper" and name in ("venv", "env"))
            or (role == "vector env" and name == "envs" and bool(node.name))
        )
        if role == "module" and name in ("_parameters", "_modules", "_buffers"):
            held = self.kinds[type(value)]
            if held.form == "dict" and self.seen.add(id(value)):
                self.count(value, held, node)
                self.attributes(value, node, held, out)
            return
        step = "" if silent else paths.attribute(name)
        below = self.tree.child(node, step, linked=type(value) is kind.type)
        if role == "callback" and name in ("locals", "globals"):
            self.later.append((value, below))
        else:
            self.enter(value, below, out)

    def role(self, node: Node, kind: ObjectKind) -> None:
        """The run's first vector env is `envs` and its first algorithm `model`, however reached.

        An algorithm that is a variable of the main module keeps that variable's name.
        """
        if kind.role in self.named:
            return
        self.named.add(kind.role)
        if kind.role == "vector env":
            node.name = "envs"
        elif kind.role == "algorithm" and node.parent is not None:
            node.name = "model"

    def optimizer_state(self, state: dict[Any, Any], node: Node, out: Queue) -> None:
        """What an optimizer keeps for each parameter, by what it is: `optimizer exp_avg`."""
        if not self.seen.add(id(state)):
            return
        self.count(state, self.kinds[type(state)], node)
        for parameter, kept in _items(state):
            self.later.append((parameter, node))
            held = self.kinds[type(kept)]
            if held.form == "dict" and self.seen.add(id(kept)):
                self.count(kept, held, node)
                for name, value in _items(kept):
                    step = f" {name}" if type(name) is str else ""
                    self.enter(value, self.tree.child(node, step), out)
            else:
                self.enter(kept, self.tree.child(node, " state"), out)


def code_parts(thing: types.CodeType) -> tuple[Any, ...]:
    """What a code object has that it does not make anew, and keep, when asked."""
    return (
        *(thing.co_consts, thing.co_names, thing.co_linetable, thing.co_exceptiontable),
        *(thing.co_name, thing.co_qualname, thing.co_filename),
    )


def _items(found: Any) -> list[tuple[Any, Any]]:
    """A dictionary's items at one moment."""
    for _ in range(3):
        try:
            return list(dict.items(found) if issubclass(type(found), dict) else found.items())
        except RuntimeError:  # it changed while it was read
            continue
    return []


def _layout(thing: Any, held: list[Any]) -> list[str | None]:
    """Which attribute each thing is that the collector finds in an object."""
    attributes = instance_dict(thing)
    names: dict[int, str] = {}
    for name, slot in slots_of(type(thing)).items():
        try:
            value = slot.__get__(thing)
        except AttributeError:
            continue
        if not is_one_of(type(value), _PLAIN):
            names[id(value)] = name
    for name, value in _items(attributes) if attributes is not None else []:
        if type(name) is str and not is_one_of(type(value), _PLAIN):
            names[id(value)] = name
    return [_ATTRIBUTES if v is attributes else names.get(id(v)) for v in held]
