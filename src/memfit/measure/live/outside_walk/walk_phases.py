"""The phases of a walk from outside: the run's variables, then libraries, in the time given."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

import numpy as np

from memfit.inside.module_owners import is_run_file, owner
from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.batches import Batch
from memfit.measure.live.outside_walk.interpreter import Frame
from memfit.measure.live.outside_walk.kept_graphs import KeptGraphs
from memfit.measure.live.outside_walk.memory_copy import Addresses, Indices
from memfit.measure.live.outside_walk.object_walk import ObjectWalk, OutOfTime
from memfit.measure.live.outside_walk.type_kinds import DATA, TypeKind

_FIRST_NAMES = 16  # among so many first names of a module are those that say where it is from
_UNSHARED = ("function", "class", "module", "leaf", "code", "skip", *DATA)
_OURS = ("memfit.", "_memfit_inside")
_TRAININGS = "memfit.systems"
_OLD = 0.25  # seconds after which what was copied is read again, for the next part


@dataclass(frozen=True, kw_only=True)
class Module:
    """One loaded module: its name, its variables' dictionary, whose it is."""

    name: str
    address: int
    variables: int
    file: str
    name_at: int
    run: bool = False
    package: str = ""


class Roots:
    """Where names begin: variables of modules and of running functions, by holder."""

    def __init__(self) -> None:
        self.batches: dict[str, tuple[list[int], list[int]]] = {}

    def add(self, kind: str, address: int, node: int) -> None:
        addresses, nodes = self.batches.setdefault(kind, ([], []))
        addresses.append(address)
        nodes.append(node)

    def __getitem__(self, kind: str) -> Batch:
        return Batch.of(*self.batches.get(kind, ([], [])))


class WholeWalk(ObjectWalk):
    """A walk over a whole process."""

    packages: Collection[str] | None = ()  # that are named like the run's own modules; None: all
    complete = False  # whether all objects have been seen
    cut = False  # whether the time was too short

    def variables(self, until: float) -> None:
        """Find what the run's own variables hold, as far as there is time."""
        self._part(self._walk, until)

    def libraries(self, until: float) -> None:
        """Find what libraries hold; nothing where the time was too short for the variables."""
        if self.cut:
            return
        if self.copy.age > _OLD:
            self.copy.forget()
        self._part(self._libraries, until)
        self.complete = not self.cut

    def _part(self, part: Callable[[], None], until: float) -> None:
        self.give_time(until)
        try:
            part()
        except OutOfTime:
            self.cut = True
            self._graphs()

    def _walk(self) -> None:
        modules = list(self._modules())
        standard = self._standard(modules)
        self.modules = [_owned(m, standard, self.packages) for m in modules]
        self._run = np.array(sorted(m.variables for m in self.modules if m.run), dtype=np.uint64)
        self._all = np.array(sorted(m.variables for m in self.modules), dtype=np.uint64)
        self._run_names = {m.name for m in self.modules if m.run}
        self._met_classes: list[Batch] = []
        self._naming_classes = False
        self.route = self._route_run
        self._know_shared()
        roots = Roots()
        self._variables(roots)
        self._calls(roots, standard)
        both = Batch.joined([roots["modules"], roots["calls"]])
        if self.copy.age > _OLD:
            self.copy.forget()  # finding these took its time
        self.levels(roots["main"], both, roots["selves"], roots["code"])
        while self.later:
            later, self.later = self.later, []
            self.levels(Batch.joined(later))
        self._own_classes()
        self._graphs()
        self.levels(roots["library calls"])
        self._graphs()

    def _graphs(self) -> None:
        KeptGraphs(self.blocks, self.names, self.copy, self.mark).follow()

    def _modules(self) -> Iterator[Module]:
        """All loaded modules, each once."""
        pairs = list(self.python.items(self.python.modules))
        addresses = np.array([module for _, module in pairs], dtype=np.uint64)
        variables = self.copy.word(addresses + np.uint64(at.MODULE_DICT))
        firsts = {name: self._early(variables, name) for name in ("__name__", "__file__")}
        modules = {
            address
            for kind, group in self.by_type(_nobodys(addresses))
            if kind.form == "module"
            for address in group.addresses.tolist()
        }
        found: dict[int, Module] = {}
        text = self.python.types["PyUnicode_Type"]
        files: dict[str, str] = {}  # of packages: their other modules come from there too
        for i, (key, address) in enumerate(pairs):
            place = int(variables[i])
            if address not in modules or self.python.type_of(key) != text:
                continue
            name, file = self.python.text(key), int(firsts["__file__"][i])
            package = name.partition(".")[0]
            if not files.get(package) or name == "__main__":
                is_text = self.python.type_of(file) == text
                files[package] = self.python.text(file) if is_text else ""
            if place not in found or name == "__main__":
                found[place] = Module(
                    name=name,
                    address=address,
                    variables=place,
                    file=files[package],
                    name_at=int(firsts["__name__"][i]),
                )
        yield from found.values()

    def _early(self, dicts: Addresses, name: str) -> Addresses:
        """The values that dictionaries have of a name which is one of their first."""
        found = np.zeros(len(dicts), dtype=np.uint64)
        keys, values = self._first_entries(dicts, _FIRST_NAMES)
        common, counts = np.unique(keys, return_counts=True)
        for key in common[np.argsort(-counts)][:_FIRST_NAMES].tolist():
            if key and self.referents.key_text(key) == name:
                at_key = keys == np.uint64(key)
                rows = at_key.any(axis=1)
                found[rows] = values[rows, at_key.argmax(axis=1)[rows]]
        return found

    def _standard(self, modules: list[Module]) -> str:
        """The folder of Python's own modules."""
        file = next((m.file for m in modules if m.name == "os" and m.file), "")
        file = file or next((m.file for m in modules if m.name == "threading"), "")
        return f"{file.rpartition('/')[0]}/" if file else "\0"

    def _know_shared(self) -> None:
        """Note what libraries have in their modules: the run uses it, but does not hold it."""
        others = Batch.of([m.variables for m in self.modules if not m.run], [])
        forms = self.python.forms.items()
        plain = np.array([a for a, form in forms if form in _UNSHARED], dtype=np.uint64)
        plain = np.append(plain, np.uint64(self.python.types["PyType_Type"]))
        for held in self.referents.entries(others.addresses):
            if held.keys is None:
                continue
            types = self.copy.word(held.addresses + np.uint64(at.TYPE))
            values = held.addresses[~np.isin(types, plain)]
            for kind, group in self.by_type(_nobodys(values)):
                if kind.form not in _UNSHARED:
                    self.shared[self.copy.marks(group.addresses)] = 1

    def _variables(self, roots: Roots) -> None:
        """The variables of the main module, and of the run's other modules."""
        for module in self.modules:
            if not module.run:
                continue
            self.mark(np.array([module.variables], dtype=np.uint64))
            prefix = "" if module.name == "__main__" else f"{module.name}."
            for name, value in self.python.named_items(module.variables):
                kind = self.kinds[self.python.type_of(value)]
                hidden = name.startswith("__") and name.endswith("__")
                if hidden or kind is None or kind.form == "module":
                    continue
                code = kind.form in ("function", "class")
                where = "code" if code else "modules" if prefix else "main"
                roots.add(where, value, self.names.top(f"{prefix}{name}"))

    def _calls(self, roots: Roots, standard: str) -> None:
        """The variables of running functions: the run's, its methods' `self`, and libraries'."""
        named = {m.variables: m.name for m in self.modules}
        for stack in self.python.stacks():
            for frame in reversed(stack):  # the outermost first: what it lends is its own
                module = named.get(frame.globals, "")
                if module.startswith(_OURS) and not module.startswith(_TRAININGS):
                    continue
                self._call(roots, frame, standard)

    def _call(self, roots: Roots, frame: Frame, standard: str) -> None:
        called, file = self.python.code_names(frame.code)
        runs = is_run_file(file, standard) and bool(file)
        top = f"{called.rpartition('.<locals>.')[2]}()"
        for name, value, in_cell in self.python.variables(frame):
            place = value
            if in_cell and self.python.type_of(value) == self.python.types["PyCell_Type"]:
                place = (self.copy.list_at(value + at.CELL, 1) or [0])[0]
            kind = self.kinds[self.python.type_of(place)] if place else None
            if kind is None:
                continue
            if name in ("self", "cls"):  # what only its own methods name
                model = kind.role == "algorithm"
                where = "calls" if model else "selves" if runs else "library calls"
                roots.add(where, place, self.names.top("model" if model else kind.name))
            else:
                node = self.names.below(self.names.top(top), f".{name}")
                roots.add("calls" if runs else "library calls", place, node)

    def _route_run(self, kind: TypeKind, batch: Batch) -> Batch:
        """The run's own functions and classes; closures may hold the run's data."""
        if kind.form == "function":
            words = self.copy.words(batch.addresses, at.FUNCTION_WORDS)
            holder = words[:, at.FUNCTION_GLOBALS]
            runs = np.isin(holder, self._run) | ~np.isin(holder, self._all)
            return batch.at(runs | (words[:, at.FUNCTION_CLOSURE] != 0))
        if not self._naming_classes:
            self._met_classes.append(batch)
            return batch.at(np.zeros(len(batch), dtype=bool))
        kinds = (self.kinds[address] for address in batch.addresses.tolist())
        own = [k is not None and k.module in self._run_names for k in kinds]
        return batch.at(np.array(own, dtype=bool))

    def _own_classes(self) -> None:
        """Count the run's classes for themselves, not for the objects that are of them."""
        self._naming_classes = True
        while self._met_classes:
            found, self._met_classes = Batch.joined(self._met_classes), []
            addresses, nodes = [], []
            for address in np.unique(found.addresses).tolist():
                kind = self.kinds[address]
                if kind is not None and kind.module in self._run_names:
                    prefix = "" if kind.module == "__main__" else f"{kind.module}."
                    addresses.append(address)
                    nodes.append(self.names.top(f"{prefix}{kind.name}"))
            self.levels(Batch.of(addresses, nodes))
        self._naming_classes = False

    def _libraries(self) -> None:
        """Count what the modules of each package hold."""
        self.naming = False
        self.route = self._route_package
        tops = {m.package: self.names.top(m.package, kind="package") for m in self.modules}
        order = sorted(self.modules, key=lambda m: m.variables)
        self._packages = np.array([tops[m.package] for m in order], dtype=np.int64)
        texts = sorted((m.name_at, tops[m.package]) for m in self.modules if m.name_at)
        self._name_places = np.array([place for place, _ in texts], dtype=np.uint64)
        self._name_packages = np.array([package for _, package in texts], dtype=np.int64)
        own = [tops[m.package] for m in self.modules]
        self.mark(np.array([m.address for m in self.modules], dtype=np.uint64))
        self.levels(Batch.of([m.variables for m in self.modules], own))

    def _route_package(self, kind: TypeKind, batch: Batch) -> Batch:
        """Functions and classes belong to the package of their module."""
        if kind.form == "function":
            places = self.copy.word(batch.addresses + np.uint64(8 * at.FUNCTION_GLOBALS))
            nodes = _looked_up(places, self._all, self._packages, batch.nodes)
        else:
            names = self._first_values(batch.addresses)
            nodes = _looked_up(names, self._name_places, self._name_packages, batch.nodes)
        return Batch(addresses=batch.addresses, nodes=nodes, weights=batch.weights)

    def _first_values(self, classes: Addresses) -> Addresses:
        """What a class defines first, which is the name of its module."""
        dicts = self.copy.word(classes + np.uint64(at.TYPE_DICT))
        found: Addresses = self._first_entries(dicts, 1)[1][:, 0]
        return found

    def _first_entries(self, dicts: Addresses, count: int) -> tuple[Addresses, Addresses]:
        """The first keys and values of dictionaries whose keys are texts, in rows."""
        keys = self.copy.word(dicts + np.uint64(8 * at.DICT_KEYS))
        head = self.copy.word(keys + np.uint64(8))
        index = np.minimum(head >> np.uint64(8) & np.uint64(0xFF), np.uint64(40))
        start = keys + np.uint64(at.KEYS_HEAD) + (np.uint64(1) << index)
        words = self.copy.words(start, 2 * count)
        general = head >> np.uint64(16) & np.uint64(0xFF) == np.uint64(at.GENERAL_KEYS)
        words[general] = 0
        return words[:, ::2], words[:, 1::2]


def _owned(module: Module, standard: str, packages: Collection[str] | None) -> Module:
    run, package = owner(module.name, module.file, standard)
    first = module.name.partition(".")[0]
    run = run or (f"{first}." not in _OURS and (packages is None or first in packages))
    return Module(**{**vars(module), "run": run, "package": package})


def _nobodys(addresses: Addresses) -> Batch:
    count = len(addresses)
    return Batch(
        addresses=addresses,
        nodes=np.zeros(count, dtype=np.int64),
        weights=np.ones(count, dtype=np.int64),
    )


def _looked_up(
    wanted: Addresses, places: Addresses, values: Indices, otherwise: Indices
) -> Indices:
    """The value of each place, where it is known."""
    if not len(places):
        return otherwise
    found = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
    return np.where(places[found] == wanted, values[found], otherwise)
