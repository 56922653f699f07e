"""Finds the gradients of tensors in memory, without asking torch for them.

To give up a gradient (`p.grad = None`, so `zero_grad()`), torch first frees it, with the
interpreter's lock let go of, and forgets it afterwards. Another thread that asks for it then gets
what is no more, and the process ends. So the way to it is read from memory, word by word, as a
debugger would: what has just gone makes no sense, and is not told.
"""

from __future__ import annotations

import os
import struct
from typing import Any

_TENSOR, _META, _STORAGE = 32, 24, 16  # words looked at of each of torch's objects
_OWNED = 1 << 63  # in a tensor's count of references: its Python object always owns it
_NUMBERS = 77  # of our own tensor: a size that no other word has by chance


class Gradients:
    """Reads gradients of one version of torch, whose layout is found on tensors of our own."""

    def __init__(self, torch: Any) -> None:
        # Before torch 2.10, a tensor that C++ alone holds may go while Python still has an object
        # of it.
        self.python_owns_tensors = False
        self._steps: tuple[int, ...] = ()
        self._classes: tuple[int, int] = (0, 0)
        if torch is not None:
            try:
                with _Memory() as memory:
                    self._find(torch, memory)
            except (OSError, RuntimeError, AttributeError, TypeError):
                self._steps = ()

    def of(self, address: int) -> tuple[int, int] | None:
        """The place and the bytes of the gradient of the tensor whose C++ object lies here."""
        if not self._steps:
            return None
        try:
            with _Memory() as memory:
                return self._read(address, memory)
        except OSError:  # no more files may be open
            return None

    def _read(self, address: int, memory: _Memory) -> tuple[int, int] | None:
        to_meta, to_gradient, to_storage, to_data, to_bytes = self._steps
        meta = memory.word(address, to_meta)
        gradient = memory.words(memory.word(meta, to_gradient), _TENSOR)
        if not gradient or gradient[0] != self._classes[0]:
            return None
        storage = memory.words(gradient[to_storage], _STORAGE)
        if not storage or storage[0] != self._classes[1]:
            return None
        return storage[to_data], storage[to_bytes]

    def _find(self, torch: Any, memory: _Memory) -> None:
        """Where each word lies that leads on to the next."""
        own = [_with_gradient(torch) for _ in range(2)]
        tensor, gradient = own[0]
        self.python_owns_tensors = bool(memory.word(tensor._cdata, 1) & _OWNED)
        storage = gradient.untyped_storage()
        ways = (
            (at, inner)
            for at, word in enumerate(memory.words(tensor._cdata, _TENSOR))
            for inner, found in enumerate(memory.words(word, _META))
            if found == gradient._cdata
        )
        for to_meta, to_gradient in ways:
            # The same way must lead to another tensor's gradient.
            meta = memory.word(own[1][0]._cdata, to_meta)
            if memory.word(meta, to_gradient) == own[1][1]._cdata:
                break
        else:
            return
        words = memory.words(gradient._cdata, _TENSOR)
        inside = memory.words(storage._cdata, _STORAGE)
        wanted = (words, storage._cdata), (inside, storage.data_ptr()), (inside, storage.nbytes())
        if words and inside and all(word in among for among, word in wanted):
            self._classes = words[0], inside[0]
            self._steps = to_meta, to_gradient, *(among.index(word) for among, word in wanted)


class _Memory:
    """This process's memory, open for a moment: children that it forks must not have it."""

    def __enter__(self) -> _Memory:
        self._file = os.open("/proc/self/mem", os.O_RDONLY)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def word(self, address: int, at: int) -> int:
        return next(iter(self.words(address + 8 * at, 1)), 0) if address else 0

    def words(self, address: int, count: int) -> tuple[int, ...]:
        """Words from an address on; none where there is no memory."""
        try:
            data = os.pread(self._file, 8 * count, address)
        except (OSError, OverflowError):
            return ()
        return struct.unpack(f"{count}Q", data) if len(data) == 8 * count else ()


def _with_gradient(torch: Any) -> tuple[Any, Any]:
    """A tensor of our own, and its gradient."""
    plain = {"device": "cpu", "dtype": torch.float32}
    tensor = torch.empty(_NUMBERS, requires_grad=True, **plain)
    gradient = torch.empty(_NUMBERS, **plain)
    tensor.grad = gradient
    return tensor, gradient
