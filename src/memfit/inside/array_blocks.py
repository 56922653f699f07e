"""The memory of arrays of numpy and JAX, torch tensors and mmaps: each block once."""

from __future__ import annotations

import array
import bisect
import contextlib
import sys
import weakref
from typing import Any

from .gradients import Gradients  # noqa: TID252 - also loaded by path, under another name
from .object_kinds import Kinds, instance_dict, is_one_of, loaded  # noqa: TID252
from .paths import Node, Tree  # noqa: TID252
from .seen_addresses import SeenAddresses  # noqa: TID252

LARGE = 65536  # blocks from here on are told one by one
_ALSO = 3
# Asking a tensor for its storage leaves a small object with it: not for millions of them.
_MOST_STORAGES = 20_000
_BUFFERS = (bytes, bytearray, array.array)


class ArrayBlock:
    """One piece of memory that an array or a tensor has."""

    __slots__ = (
        *("also", "device", "dtype", "inside", "library", "mapping", "memory", "nbytes", "node"),
        *("owner", "shape", "start", "views"),
    )

    def __init__(self, start: int, nbytes: int, node: Node, library: str, device: str) -> None:
        self.start, self.nbytes, self.node = start, nbytes, node
        self.library, self.device = library, device
        self.dtype, self.shape = "", ()  # type: tuple[str, tuple[int, ...]]
        self.views = 0
        self.also: list[Node] = []
        self.memory, self.mapping = "own", ""
        self.inside: ArrayBlock | None = None  # a larger block that holds this one
        self.owner: weakref.ref[Any] | None = None


class Small:
    """The small blocks of one holder, summed."""

    __slots__ = ("count", "device", "dtype", "library", "nbytes", "shape", "sizes", "starts")

    def __init__(self, library: str, device: str, dtype: str, shape: tuple[int, ...]) -> None:
        self.library, self.device, self.dtype, self.shape = library, device, dtype, shape
        self.count = self.nbytes = 0
        self.starts, self.sizes = array.array("Q"), array.array("L")


class Blocks:
    """All memory found so far."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.large: dict[tuple[str, int], ArrayBlock] = {}
        self.holders: dict[int, ArrayBlock] = {}  # by the id of an array or tensor of a large block

    def note_large(
        self,
        start: int,
        nbytes: int,
        node: Node,
        library: str,
        device: str,
        dtype: str,
        shape: tuple[int, ...],
    ) -> ArrayBlock:
        """Add a block, or a view where it is known."""
        known = self.large.get((device, start))
        if known is not None and known.nbytes >= nbytes:
            known.views += 1
            self.also(known, node)
            return known
        block = ArrayBlock(start, nbytes, known.node if known else node, library, device)
        block.dtype, block.shape = dtype, shape
        if known is not None:
            block.views = known.views + 1
            self.also(block, node)
        self.large[device, start] = block
        return block

    def again(self, address: int, node: Node, *, view: bool = False) -> None:
        """Note one more way to an array or tensor that is known."""
        block = self.holders.get(address)
        if block is not None:
            block.views += view
            self.also(block, node)

    def also(self, block: ArrayBlock, node: Node) -> None:
        if node is not block.node and len(block.also) < _ALSO and node not in block.also:
            block.also.append(node)

    def settle(self, maps: str = "/proc/self/maps") -> list[ArrayBlock]:
        """All large blocks, after those that lie within another have become views of it."""
        blocks = sorted(self.large.values(), key=lambda b: (b.device, b.start, -b.nbytes))
        outer: ArrayBlock | None = None
        for block in blocks:
            if (
                outer is not None
                and outer.device == block.device
                and block.start + block.nbytes <= outer.start + outer.nbytes
            ):
                block.inside = outer
                outer.views += 1 + block.views
                self.also(outer, block.node)
            else:
                outer = block
        whole = [block for block in blocks if block.inside is None]
        _name_mappings([block for block in whole if block.device == "cpu"], maps)
        return whole

    def without_views(self, small: Small, whole: list[ArrayBlock], starts: list[int]) -> None:
        """Take from the small blocks those that lie within a large one."""
        for start, nbytes in zip(small.starts, small.sizes, strict=True):
            at = bisect.bisect_right(starts, start) - 1
            if at >= 0 and start + nbytes <= whole[at].start + whole[at].nbytes:
                small.count -= 1
                small.nbytes -= nbytes
                whole[at].views += 1


class ArrayBlocks(Blocks):
    """The memory of this process's own arrays and tensors."""

    def __init__(self, kinds: Kinds, tree: Tree) -> None:
        super().__init__(tree)
        self.kinds = kinds
        self.small = SeenAddresses()
        self.tensors = 0
        numpy, torch = kinds.arrays.get("array"), kinds.arrays.get("tensor")
        self.numpy = (
            {
                name: numpy.__dict__[name].__get__
                for name in ("base", "nbytes", "dtype", "shape", "size", "__array_interface__")
            }
            if numpy is not None
            else {}
        )
        self.torch: Any = torch
        self.gradients = Gradients(sys.modules.get("torch") if torch is not None else None)
        self.storage: Any = loaded("torch", "_C")
        self.tolist: Any = numpy.__dict__["tolist"] if numpy is not None else None

    def data(self, form: str, found: Any, node: Node, seen: SeenAddresses) -> list[Any]:
        """Note an array, a tensor or a map; returns what else it holds."""
        if form == "array":
            return self.array(found, node, seen)
        if form == "tensor" and self.kinds[type(found)].answers:  # what it wraps may be told
            attributes = instance_dict(found)
            return [] if attributes is None else [attributes]
        if form == "tensor":
            self.tensor(found, node)
        elif form == "jax":
            self.jax(found, node)
        else:
            self.map(found, node)
        return []

    def jax(self, found: Any, node: Node) -> None:
        """Note an array of JAX; one that is still being computed has no memory to be told."""
        own = self.kinds.arrays["jax"].__dict__
        try:
            if own["is_deleted"](found) or not own["is_ready"](found):
                return
            if (
                own["platform"](found) != "cpu"
                or len(own["sharding"].__get__(found).device_set) > 1
            ):
                return
            start, nbytes = (
                own["unsafe_buffer_pointer"](found),
                own["on_device_size_in_bytes"](found),
            )
            aval = own["aval"].__get__(found)
            dtype, shape = str(aval.dtype), tuple(aval.shape)
        except (RuntimeError, ValueError, AttributeError, KeyError, TypeError):
            return  # given away meanwhile, or of no memory that can be told
        block = self.note(start, nbytes, node, "jax", "cpu", dtype, shape)
        if block is not None:
            self.holders[id(found)] = block

    def map(self, found: Any, node: Node) -> None:
        """Note an mmap. To ask it for a buffer would forbid the target to resize or close it."""
        import ctypes

        try:
            nbytes = self.kinds.arrays["map"].__len__(found)
        except ValueError:  # closed
            return
        start, said = (ctypes.c_size_t * 2).from_address(id(found) + object.__basicsize__)
        if said == nbytes and start and start % 4096 == 0:
            block = self.note(start, nbytes, node, "mmap", "cpu", "bytes", (nbytes,))
            if block is not None:
                self.holders[id(found)] = block

    def array(self, found: Any, node: Node, seen: SeenAddresses) -> list[Any]:
        """Note a numpy array; returns what else it holds."""
        get = self.numpy
        owner, base = found, get["base"](found)
        while base is not None and self.kinds[type(base)].form == "array":
            owner, base = base, get["base"](base)
        if owner is not found and not seen.add(id(owner)):
            self.again(id(owner), node, view=True)
            return []
        if type(base) is memoryview:
            try:
                base = memoryview.obj.__get__(base)
            except ValueError:
                base = None
        if base is not None:
            if is_one_of(type(base), _BUFFERS):
                return [base]
            if self.kinds[type(base)].form == "tensor":
                if seen.add(id(base)):
                    self.tensor(base, node)
                self.again(id(base), node, view=True)
                return [base]
        dtype = get["dtype"](owner)
        start = get["__array_interface__"](owner)["data"][0]
        shape = get["shape"](owner)
        block = self.note(start, get["nbytes"](owner), node, "numpy", "cpu", str(dtype.name), shape)
        if block is not None:
            block.views += owner is not found
            self.hold(owner, block)
            if found is not owner:
                self.holders[id(found)] = block
        rest = [] if base is None else [base]
        return rest + (self.tolist(owner) if dtype.kind == "O" and get["size"](owner) else [])

    def tensor(self, found: Any, node: Node) -> None:
        """Note a torch tensor, and its gradient, where it has one."""
        if self.kinds[type(found)].answers:
            return
        get, names = self.torch, self.torch.__dict__
        self.tensors += 1
        gradient = None
        try:
            device = str(names["device"].__get__(found))
            if device == "meta" or self.storage._is_cow_tensor(found):
                return
            if names["is_leaf"].__get__(found) and names["requires_grad"].__get__(found):
                gradient = self.gradients.of(names["_cdata"].__get__(found))
            nbytes = get.numel(found) * get.element_size(found)
            if self.tensors <= _MOST_STORAGES or get._is_view(found):
                storage = get.untyped_storage(found)
                start = self.storage.StorageBase.data_ptr(storage)
                whole = self.storage.StorageBase.nbytes(storage)
            else:
                before = get.storage_offset(found) * get.element_size(found)
                start, whole = get.data_ptr(found) - before, nbytes + before
            dtype = str(names["dtype"].__get__(found)).removeprefix("torch.")
            shape = tuple(names["shape"].__get__(found))
        except (RuntimeError, NotImplementedError, AttributeError, TypeError):
            return  # sparse, fake or half-made: no memory that can be told
        if whole:
            block = self.note(start, whole, node, "torch", device, dtype, shape)
            if block is not None:
                self.hold(found, block)
        if gradient is not None and gradient[1] >= nbytes > 0:
            below = self.tree.child(node, " grad")
            self.note(*gradient, below, "torch", device, dtype, shape)

    def note(
        self,
        start: int,
        nbytes: int,
        node: Node,
        library: str,
        device: str,
        dtype: str,
        shape: tuple[int, ...],
    ) -> ArrayBlock | None:
        """Add a block, or a view where it is known; only large ones are told apart."""
        if nbytes < LARGE:
            if nbytes and (device != "cpu" or self.small.add(start)):
                sums = node.small_arrays
                if not isinstance(sums, Small):
                    sums = node.small_arrays = Small(library, device, dtype, shape)
                sums.count += 1
                sums.nbytes += nbytes
                if library == "torch" and device == "cpu":
                    sums.starts.append(start)
                    sums.sizes.append(nbytes)
            return None
        return self.note_large(start, nbytes, node, library, device, dtype, shape)

    def hold(self, owner: Any, block: ArrayBlock) -> None:
        """Remember whose block it is, without keeping that alive."""
        self.holders[id(owner)] = block
        if block.owner is None:
            with contextlib.suppress(TypeError):
                block.owner = weakref.ref(owner)


def _name_mappings(blocks: list[ArrayBlock], maps: str) -> None:
    """Say which blocks, ordered by address, are of a file or of shared memory."""
    starts = [block.start for block in blocks]
    with open(maps) as file:
        for line in file:
            fields = line.split(maxsplit=5)
            name = fields[5].strip() if len(fields) > 5 else ""
            if not name.startswith("/"):
                continue
            low, high = (int(number, 16) for number in fields[0].split("-"))
            at = bisect.bisect_left(starts, low)
            while at < len(blocks) and starts[at] < high:
                shared = "s" in fields[1] and name.startswith(
                    ("/dev/shm/", "/memfd:", "/dev/zero", "/SYSV")
                )
                blocks[at].memory = "shared" if shared else "file"
                blocks[at].mapping = name
                at += 1


def torch_quiet() -> Any:
    """While this is entered, no tensor subclass's own code answers in this thread."""
    guard = loaded("torch", "_C.DisableTorchFunctionSubclass")
    return guard() if guard is not None else contextlib.nullcontext()
