"""Classifies objects by their type alone: no code of the target is run.

Types are told apart by their addresses: to compare two, or to look one up, would ask its metaclass.
"""

from __future__ import annotations

import collections
import sys
import types
from collections.abc import Callable
from typing import Any

_mro: Callable[[type], tuple[type, ...]] = type.__dict__["__mro__"].__get__
own_names: Callable[[type], Any] = type.__dict__["__dict__"].__get__
_flags: Callable[[type], int] = type.__dict__["__flags__"].__get__
_given_name: Callable[[type], str] = type.__dict__["__name__"].__get__
variables_of: Callable[[Any], dict[str, Any]] = own_names(types.ModuleType)["__dict__"].__get__

_HAVE_GC = 1 << 14
_MANAGED = (1 << 3) | (1 << 4)  # a dictionary or weak references stand before the object
_GC_HEADER = 16

# Forms of things whose memory is told as blocks.
DATA = ("array", "tensor", "jax", "map")

# Things without anything inside.
_LEAVES = (
    *(int, float, complex, bool, str, bytes, bytearray, type(None), range, type(...)),
    *(types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType),
    *(types.GetSetDescriptorType, types.MemberDescriptorType),
)

# Classes that matter to a training, by name and package, wherever they stand in the ancestry.
# Those of RL libraries are told with each request.
ROLES = {
    "gymnasium.VectorEnv": "vector env",
    "gym.VectorEnv": "vector env",
    "gymnasium.Wrapper": "wrapper",
    "gym.Wrapper": "wrapper",
    "gymnasium.VectorWrapper": "vector wrapper",
    "torch.Optimizer": "optimizer",
    "torch.Module": "module",
}


class ObjectKind:
    """What the walk needs to know of a type."""

    __slots__ = (
        *("answers", "ancestors", "form", "header", "holds", "name", "package", "role"),
        *("sizer", "type"),
    )

    def __init__(self, kind: type, arrays: dict[str, Any], roles: dict[str, str]) -> None:
        ancestors = _mro(kind)
        self.ancestors = frozenset(map(id, ancestors))
        self.type = kind  # which also keeps its address its own
        self.name = _name(kind)
        self.package = package_of(kind)
        flags = _flags(kind)
        self.header = _GC_HEADER * bool(flags & _HAVE_GC) + 16 * bool(flags & _MANAGED)
        self.form = _form(kind, self.ancestors, arrays)
        # A tensor whose class takes torch's own calls over: to ask it anything would call that.
        self.answers = self.form == "tensor" and _takes_calls(ancestors)
        # The data of an array is told as memory, not as a Python object.
        data = self.form in DATA
        self.sizer = object.__sizeof__ if data else _sizer(ancestors)
        self.holds = self.form not in ("leaf", *DATA)
        self.role = _role(ancestors, roles) if self.form in ("object", "dict", "list") else ""

    def size(self, thing: object) -> int:
        """Bytes of the object itself, as its allocator sees them."""
        return (self.sizer(thing) + self.header + 15) & ~15


class Kinds:
    """The kinds of all types met so far; `roles` are those of more classes, by package and name."""

    def __init__(self, roles: dict[str, str] | None = None) -> None:
        self.known: dict[int, ObjectKind] = {}  # by the address of the type
        self.roles = {**ROLES, **(roles or {})}
        self.arrays = {
            name: found
            for name, module, path in (
                ("array", "numpy", "ndarray"),
                ("scalar", "numpy", "generic"),
                ("tensor", "torch", "_C.TensorBase"),
                ("storage", "torch", "UntypedStorage"),
                ("jax", "jaxlib._jax", "ArrayImpl"),
                ("map", "mmap", "mmap"),
            )
            if (found := loaded(module, path)) is not None
        }

    def __getitem__(self, kind: type) -> ObjectKind:
        found = self.known.get(id(kind))
        if found is None:
            found = self.known[id(kind)] = ObjectKind(kind, self.arrays, self.roles)
        return found


def loaded(module: str, path: str) -> Any:
    """Something of a library that the target has loaded, or None."""
    found: Any = sys.modules.get(module)
    for name in path.split("."):
        if not issubclass(type(found), types.ModuleType):
            return None
        found = variables_of(found).get(name)
    return found


def package_of(kind: type) -> str:
    """The package in which a class was written."""
    # A class of C code says it in its name.
    module = module_of(kind) or (kind.__module__ if type(kind) is type else "")
    return module.partition(".")[0] if type(module) is str else ""


def module_of(kind: type) -> str:
    """The module in which a class was written."""
    module = own_names(kind).get("__module__")
    return module if type(module) is str else ""


def slots_of(kind: type) -> dict[str, Any]:
    """The slots of a class's instances: name to the descriptor that reads one."""
    return {
        name: found
        for ancestor in reversed(_mro(kind))
        for name, found in list(own_names(ancestor).items())
        if type(found) is types.MemberDescriptorType and type(name) is str
    }


def instance_dict(thing: object) -> dict[str, Any] | None:
    """The dictionary of an object's attributes, read past whatever its class defines."""
    for ancestor in _mro(type(thing)):
        found = own_names(ancestor).get("__dict__")
        if type(found) is types.GetSetDescriptorType:
            try:
                attributes = found.__get__(thing)
            except (AttributeError, TypeError):
                return None
            return attributes if type(attributes) is dict else None
    return None


def _sizer(ancestors: tuple[type, ...]) -> Callable[[object], int]:
    """The nearest `__sizeof__` that is C code."""
    for ancestor in ancestors:
        found = own_names(ancestor).get("__sizeof__")
        if type(found) is types.MethodDescriptorType:
            return found
    return object.__sizeof__


def _name(kind: type) -> str:
    """The name of a class, as a plain text whatever it was given."""
    return str.__str__(_given_name(kind))


def _takes_calls(ancestors: tuple[type, ...]) -> bool:
    """Whether a class of tensors has a `__torch_dispatch__` of its own; torch's own is C code."""
    found = (own_names(ancestor).get("__torch_dispatch__") for ancestor in ancestors)
    nearest = next((taken for taken in found if taken is not None), None)
    return nearest is not None and type(nearest) is not types.BuiltinFunctionType


def _form(kind: type, ancestors: frozenset[int], arrays: dict[str, Any]) -> str:
    """How to look inside."""
    if is_one_of(kind, _LEAVES):
        return "leaf"
    for form in (*DATA, "storage", "scalar"):
        if form in arrays and id(arrays[form]) in ancestors:
            return form if form in DATA else "leaf"
    for base, form in _FORMS:
        if id(base) in ancestors:
            return form
    return "object"


def is_one_of(kind: type, kinds: tuple[type, ...]) -> bool:
    """Whether a type is one of these."""
    return any(kind is one for one in kinds)


_FORMS: tuple[tuple[type, str], ...] = (
    (dict, "dict"),
    (list, "list"),
    (tuple, "list"),
    (type, "class"),
    (types.ModuleType, "module"),
    (types.FunctionType, "function"),
    (types.MethodType, "plain"),
    (types.CellType, "plain"),
    (types.CodeType, "code"),
    (types.GeneratorType, "generator"),
    (types.FrameType, "skip"),
    (types.TracebackType, "skip"),
    (set, "set"),
    (frozenset, "set"),
    (collections.deque, "set"),
)


def _role(ancestors: tuple[type, ...], roles: dict[str, str]) -> str:
    for ancestor in ancestors:
        role = roles.get(f"{module_of(ancestor).partition('.')[0]}.{_name(ancestor)}")
        if role:
            return role
    return ""
