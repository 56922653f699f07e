"""Walks over the objects of another process, level by level, and counts each for its holder.

Objects of one type that one level reaches are read together, whoever holds them: the cost of a
level is that of its types, not of its objects.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from memfit.inside import paths
from memfit.measure.kernel import mappings
from memfit.measure.live.outside_walk import layouts as at
from memfit.measure.live.outside_walk.batches import Batch, NumberedTree
from memfit.measure.live.outside_walk.chains import Chains
from memfit.measure.live.outside_walk.interpreter import Interpreter
from memfit.measure.live.outside_walk.memory_copy import Addresses, Flags, Indices
from memfit.measure.live.outside_walk.number_blocks import NumberBlocks
from memfit.measure.live.outside_walk.object_sizes import SMALL, ObjectSizes
from memfit.measure.live.outside_walk.referents import Held, Referents
from memfit.measure.live.outside_walk.type_kinds import DATA, TypeKind, TypeKinds

_MANY_NAMES = 20_000  # keys of one level that are read as names
_AT_ONCE = 500_000  # objects of one type that are read together
_DISTINCT = 0.95
_LEAST_WORK = 0.7  # seconds of the processor, for which it may take longer
_CONFIRMED, _MOST_CONFIRMED = 4096, 20_000  # bytes of objects that are read again, and how many
_LONG, _MOST_LONG = 256, 1024  # elements of a container that may have moved; of a level
_OLD = 0.1  # seconds after which a copy is too old to follow one that has
_ELEMENTS_A_SECOND, _SHORT = 50_000, 0.01  # that are looked at with all they hold; seconds
_SILENT_IN_MODULES = ("_parameters", "_modules", "_buffers")
NONE = np.zeros(0, dtype=np.int64)
Group = tuple[TypeKind, Batch]
# Decides which functions and classes are entered, and for which holder.
Route = Callable[[TypeKind, Batch], Batch]


class OutOfTime(Exception):
    """The walk has used the time that it was given."""


class ObjectWalk:
    """What was found: a tree of holders, and the memory blocks of arrays and tensors."""

    def __init__(
        self,
        python: Interpreter,
        maps: Sequence[mappings.Mapping],
        roles: Mapping[str, str],
    ) -> None:
        self.python = python
        self.copy = python.copy
        self.patience = 0.5  # times the time given, by which it may take longer to get its work
        self.give_time(0.0)
        self.kinds = TypeKinds(python, roles)
        self.names = NumberedTree()
        self.referents = Referents(python)
        self.sizes = ObjectSizes(python)
        self.seen = np.zeros(self.copy.most_marks, dtype=np.uint8)
        self.shared = np.zeros(self.copy.most_marks, dtype=np.uint8)
        self.blocks = NumberBlocks(python, self.kinds, maps, self.names, self.mark)
        self.chains = Chains(self.copy, self.seen)
        self.objects = 0
        self.sampled = False
        self.naming = True  # by attribute and key; else everything below a holder is its own
        self.route: Route = lambda _, batch: batch
        self.later: list[Batch] = []
        self._roles_named: set[str] = set()

    def give_time(self, until: float) -> None:
        """Let the walk go on until then."""
        self.until = until
        self._seconds = max(0.0, until - time.monotonic())
        self._least_work = time.process_time() + _LEAST_WORK
        self._given = time.monotonic(), time.thread_time()

    def mark(self, addresses: Addresses) -> Flags:
        """Which of these are new, each once; they are seen from now on."""
        new = np.zeros(len(addresses), dtype=bool)
        readable = np.flatnonzero(self.copy.readable(addresses))
        places = self.copy.marks(addresses[readable])
        unseen = self.seen[places] == 0
        places, readable = places[unseen], readable[unseen]
        places, first = np.unique(places, return_index=True)
        self.seen[places] = 1
        new[readable[first]] = True
        return new

    def levels(self, *roots: Batch) -> None:
        """Breadth first: the shortest way to a thing names it. Further roots are levels later."""
        self._keep_pace()
        waiting = list(roots)
        level: list[Group] = []
        while level or waiting:
            parts: list[Batch] = []
            for kind, batch in level:
                for start in range(0, len(batch), _AT_ONCE):
                    self.check_time()
                    piece = batch.at(np.arange(start, min(len(batch), start + _AT_ONCE)))
                    self._renew(kind, piece)
                    parts += self.look(kind, piece)
            if waiting:
                parts.append(waiting.pop(0))
            level = self.enter(Batch.joined(parts))
            level += self._chained(level)

    def _chained(self, level: Sequence[Group]) -> list[Group]:
        """What follows the few objects of a level in a chain that has gone on for long."""
        if not self.chains.may_be(sum(len(batch) for _, batch in level)):
            return []
        found: list[Group] = []
        for kind, batch in level:
            for address, node in zip(batch.addresses.tolist(), batch.nodes.tolist(), strict=True):
                then = self.chains.ahead(kind.address, kind.form, address, self.check_time)
                found += self.enter(Batch.of(then, [node] * len(then))) if then else []
        return found

    def _keep_pace(self) -> None:
        """Look at so many elements as there is time for, at the pace of what came before."""
        now, (since, worked) = time.monotonic(), self._given
        share = (time.thread_time() - worked) / max(now - since, _SHORT)
        left = max(0.0, self.until - now)
        self.referents.afford(left * min(1.0, share) * _ELEMENTS_A_SECOND)

    def _renew(self, kind: TypeKind, batch: Batch) -> None:
        """Read everything anew where a long container has changed since it was copied.

        What grows is moved to where there is room, and what was there before means nothing.
        """
        if self.copy.age < _OLD or kind.form not in ("list", "dict", "set", "deque"):
            return
        lengths = self.referents.lengths(kind, batch.addresses)
        rows = np.flatnonzero(lengths >= _LONG)
        long = batch.addresses[rows[np.argsort(-lengths[rows])[:_MOST_LONG]]]
        before, now = self.copy.words(long, 6), self.copy.now(long, 6)
        if (before[:, 1:] != now[:, 1:]).any():
            self.copy.forget()

    def check_time(self) -> None:
        late = time.monotonic() - self.until
        # On a machine that is too busy to let this run at all, it takes longer than was given.
        starved = time.process_time() < self._least_work and late < self.patience * self._seconds
        if late > 0 and not starved:
            raise OutOfTime

    def enter(self, batch: Batch) -> list[Group]:
        """Count new objects for their holders; those that may hold more come back, by type."""
        found: list[Group] = []
        for kind, met in self.by_type(batch):
            if kind.form in ("module", "skip"):
                continue
            group, known = self._new(kind, met)
            if len(group):
                self.count(kind, group)
            if kind.form in DATA:
                for more in self.blocks.enter(kind, group) if len(group) else ():
                    found += self.enter(more)
                self.blocks.again_all(known)
            if not len(group):
                continue
            if kind.holds or kind.managed or kind.dict_at:
                found.append((kind, group))
        return found

    def _new(self, kind: TypeKind, met: Batch) -> tuple[Batch, Batch]:
        """Those of the objects met that are not another's: new ones, and those that are known."""
        if kind.form in ("function", "class"):
            met = self.route(kind, met)
        elif kind.form != "leaf" and self.naming:
            met = met.at(self.shared[self.copy.marks(met.addresses)] == 0)
        new = self.mark(met.addresses)
        return met.at(new), met.at(~new)

    def by_type(self, batch: Batch) -> Iterator[Group]:
        """Objects by type; what turns out to be none is left out."""
        batch = batch.at(self.copy.readable(batch.addresses))
        types = self.copy.word(batch.addresses + np.uint64(at.TYPE))
        own, inverse = np.unique(types, return_inverse=True)
        likely = self._likely(own)
        order = np.argsort(inverse, kind="stable")
        ends = np.searchsorted(inverse[order], np.arange(len(own) + 1))
        for i in np.flatnonzero(likely).tolist():
            kind = self.kinds[int(own[i])]
            if kind is not None:
                yield kind, batch.at(order[ends[i] : ends[i + 1]])

    def _likely(self, types: Addresses) -> Flags:
        """What may be types, told for many at once."""
        words = self.copy.words(types, at.TYPE_WORDS)
        basic, flags = words[:, at.TYPE_BASIC // 8], words[:, at.TYPE_FLAGS // 8]
        right = (basic >= np.uint64(at.HEAD)) & (basic < np.uint64(2**16))
        return np.asarray(right & ((flags & np.uint64(at.READY)) != 0), dtype=bool)

    def count(self, kind: TypeKind, batch: Batch) -> None:
        small = np.zeros(len(batch), dtype=np.int64)
        large = small.copy()
        for said in self.sizes.parts(kind, batch.addresses):
            part = self._confirmed(batch.addresses, said)
            small += np.where(part <= SMALL, part, 0)
            large += np.where(part > SMALL, part, 0)
        elements = self.referents.lengths(kind, batch.addresses)
        self.names.add(batch, small, large, elements)
        self.objects += len(batch)

    def _confirmed(self, addresses: Addresses, sizes: Indices) -> Indices:
        """Sizes, but for large ones of objects that are no more: these are read again."""
        large = np.flatnonzero(sizes >= _CONFIRMED)[:_MOST_CONFIRMED]
        if not len(large):
            return sizes
        before = self.copy.words(addresses[large], 3)
        now = self.copy.now(addresses[large], 3)
        length = before[:, 2].astype(np.float64)
        # What grows meanwhile is still the same; what was freed is something else.
        alike = (now[:, 2] <= 2 * length + 1000) & (now[:, 2] >= length / 2 - 1000)
        found = sizes.copy()
        found[large[(before[:, 1] != now[:, 1]) | ~alike]] = 0
        return found

    def look(self, kind: TypeKind, batch: Batch) -> list[Batch]:
        """Go one step into objects of one type."""
        found: list[Batch] = []
        if self.naming and kind.role:
            self._role(kind, batch)
        if kind.form == "class":
            return self._look_into_classes(batch)
        for held in self.referents.of(kind, batch.addresses, naming=self.naming):
            found += self._held(kind, held, batch)
        for held in self.referents.attributes(kind, batch.addresses):
            if held.step or not held.attribute:
                found += self._held(kind, held, batch)
            else:
                found += self._attribute_dicts(kind, held, batch)
        return found

    def _look_into_classes(self, batch: Batch) -> list[Batch]:
        """What a class defines, by name; its tables are its own."""
        found = []
        for i, held in enumerate((at.TYPE_DICT, at.TYPE_MRO)):
            values = self.copy.word(batch.addresses + np.uint64(held))
            rows = np.arange(len(batch))
            one = Held(addresses=values, rows=rows, attribute=True)
            kind = self.kinds[self.python.types["PyType_Type"]]
            assert kind is not None
            found += (
                self._attribute_dicts(kind, one, batch) if i == 0 else self._held(kind, one, batch)
            )
        return found

    def _held(self, kind: TypeKind, held: Held, batch: Batch) -> list[Batch]:
        """What objects hold, with the names of its holders."""
        if not len(held.addresses):
            return []
        weights = batch.weights[held.rows]
        if held.weight > 1:
            self.sampled = True
            distinct = len(np.unique(held.addresses)) / len(held.addresses)
            weights = weights * (held.weight if distinct > _DISTINCT else 1)
        nodes = batch.nodes[held.rows]
        if held.step == "\0":  # something of the object's own, counted and not looked into
            self.mark(held.addresses)
            return []
        one = Batch(addresses=held.addresses, nodes=nodes, weights=weights)
        if not self.naming:
            return [one]
        if held.keys is not None:
            return self._by_key(kind, held, one)
        if held.attribute and held.step:
            return self._attribute(kind, held.step, one)
        if held.many:
            return [_moved(one, self.names.children(nodes, paths.ANY))]
        return [_moved(one, self.names.children(nodes, held.step, indexed=bool(held.step)))]

    def _by_key(self, kind: TypeKind, held: Held, one: Batch) -> list[Batch]:
        """Values of dictionaries, by their keys where these are names and few."""
        assert held.keys is not None
        among = np.bincount(held.rows)[held.rows] * held.weight
        own, inverse = np.unique(held.keys, return_inverse=True)
        if len(own) > _MANY_NAMES:
            return [_moved(one, self.names.children(one.nodes, paths.ANY))]
        steps = [self.referents.key_step(key, 1) for key in own.tolist()]
        few = [self.referents.key_step(key, 9) for key in own.tolist()]
        texts = [paths.ANY, *steps]
        numbers = np.arange(1, len(own) + 1)[inverse]
        named = np.array([bool(step) for step in steps])[inverse] & (among <= 256)
        named &= np.array([bool(step) for step in few])[inverse] | (among <= 8)
        chosen = np.where(named, numbers, 0)
        return [_moved(one, self.names.by_step(one.nodes, chosen, texts))]

    def _attribute_dicts(self, kind: TypeKind, held: Held, batch: Batch) -> list[Batch]:
        """The attributes of objects that are in dictionaries."""
        nodes, weights = batch.nodes[held.rows], batch.weights[held.rows]
        dicts = Batch(addresses=held.addresses, nodes=nodes, weights=weights)
        return self.attributes(kind, dicts)

    def attributes(self, owner: TypeKind, dicts: Batch, step: str = ".") -> list[Batch]:
        """The values of dictionaries whose keys are attributes."""
        found = []
        for _, group in self._new_dicts(dicts):
            for held in self.referents.entries(group.addresses):
                if held.keys is None:
                    continue
                values = Batch(
                    addresses=held.addresses,
                    nodes=group.nodes[held.rows],
                    weights=group.weights[held.rows] * held.weight,
                )
                if not self.naming:
                    found.append(values)
                    continue
                for key, some in _by(held.keys, values):
                    name = self.referents.key_text(key)
                    if step == ".":
                        found += self._attribute(owner, name, some)
                    else:
                        below = self.names.children(some.nodes, f"{step}{name}")
                        found.append(_moved(some, below))
        return found

    def _new_dicts(self, dicts: Batch) -> Iterator[Group]:
        """Those that are dictionaries and new, counted for their holders."""
        for kind, met in self.by_type(dicts):
            group = met.at(self.mark(met.addresses)) if kind.form == "dict" else met.at(NONE)
            if len(group):
                self.count(kind, group)
                yield kind, group

    def _attribute(self, kind: TypeKind, name: str, one: Batch) -> list[Batch]:
        """The values of one attribute of objects of one type."""
        if not name:
            return [one]
        role = kind.role
        if role == "optimizer" and name == "state":
            return self._optimizer_state(one)
        if role == "module" and name in _SILENT_IN_MODULES:
            plain = self.kinds[self.python.types["PyDict_Type"]]
            assert plain is not None
            return self.attributes(plain, one)
        silent = (role == "wrapper" and name == "env") or (
            role == "vector wrapper" and name in ("venv", "env")
        )
        step = "" if silent else paths.attribute(name)
        own, inverse = np.unique(one.nodes, return_inverse=True)
        below = []
        types = self.copy.word(one.addresses + np.uint64(at.TYPE))
        linked = bool((types == np.uint64(kind.address)).any())
        for number in own.tolist():
            named_envs = role == "vector env" and name == "envs" and self.names.nodes[number].name
            below.append(self.names.below(number, "" if named_envs else step, linked=linked))
        moved = _moved(one, np.array(below, dtype=np.int64)[inverse])
        if (role == "optimizer" and name == "param_groups") or (
            role == "callback" and name in ("locals", "globals")
        ):
            self.later.append(moved)
            return []
        return [moved]

    def _optimizer_state(self, one: Batch) -> list[Batch]:
        """What an optimizer keeps for each parameter, by what it is: `optimizer exp_avg`."""
        found: list[Batch] = []
        for kind, group in self._new_dicts(one):
            for held in self.referents.entries(group.addresses):
                things = Batch(
                    addresses=held.addresses,
                    nodes=group.nodes[held.rows],
                    weights=group.weights[held.rows],
                )
                if held.keys is None:
                    self.later.append(things)
                else:
                    found += self.attributes(kind, things, " ")
        return found

    def _role(self, kind: TypeKind, batch: Batch) -> None:
        """The run's first vector env is `envs` and its first algorithm `model`, however reached.

        An algorithm that is a variable of the main module keeps that variable's name.
        """
        if kind.role in self._roles_named:
            return
        self._roles_named.add(kind.role)
        node = self.names.nodes[int(batch.nodes[0])]
        if kind.role == "vector env":
            node.name = "envs"
        elif kind.role == "algorithm" and node.parent is not None:
            node.name = "model"


def _by(keys: Addresses, batch: Batch) -> Iterator[tuple[int, Batch]]:
    """Objects by the key that each has."""
    order = np.argsort(keys, kind="stable")
    own, first = np.unique(keys[order], return_index=True)
    for key, some in zip(own.tolist(), np.split(order, first[1:]), strict=True):
        yield key, batch.at(some)


def _moved(batch: Batch, nodes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Batch:
    return Batch(addresses=batch.addresses, nodes=nodes, weights=batch.weights)
