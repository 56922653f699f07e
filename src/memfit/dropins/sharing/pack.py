"""Any structure as a small pickle and its arrays apart, so that arrays can lie in shared memory.

Arrays come back as read-only views of the memory that holds them. The columns of a pandas
DataFrame are such arrays too.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError
from memfit.units import format_bytes

# What is no array is copied into every process, so that it must be small.
STRUCTURE_LIMIT = 1 << 20


def pack(value: Any) -> tuple[bytes, list[memoryview]]:
    """The pickle of a structure, and the bytes of its arrays."""
    arrays: list[memoryview] = []

    def apart(buffer: pickle.PickleBuffer) -> None:
        arrays.append(buffer.raw())

    file = io.BytesIO()
    pickler = _Pickler(file, protocol=5, buffer_callback=apart)
    pickler.whole = value
    try:
        pickler.dump(value)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"the data cannot be shared: {error}. Give arrays, and dicts, lists and tuples of them"
        ) from error
    structure = file.getvalue()
    if len(structure) > STRUCTURE_LIMIT:
        raise UsageError(
            f"{format_bytes(len(structure))} of the data are no arrays and would be copied into "
            "every process. Put data into numpy arrays"
        )
    return structure, arrays


def unpack(structure: bytes, arrays: Sequence[memoryview]) -> Any:
    """The structure again, on memory that holds its arrays."""
    return pickle.loads(structure, buffers=arrays)


class _Pickler(pickle.Pickler):
    whole: Any

    def reducer_override(self, obj: Any) -> Any:
        if isinstance(obj, np.ndarray):
            return self._array(obj)
        kind = type(obj)
        if kind.__module__.split(".")[0] == "pandas":
            if kind.__name__ == "DataFrame":
                columns = [_column(obj.iloc[:, n]) for n in range(obj.shape[1])]
                return _frame, (list(obj.columns), columns, obj.index)
            if kind.__name__ == "Series":
                return _series, (obj.name, _column(obj), obj.index)
            if kind.__name__ == "Categorical":
                return _categorical, (obj.codes, list(obj.categories), obj.ordered)
        return NotImplemented

    def _array(self, array: NDArray[Any]) -> Any:
        if array.dtype.hasobject:
            raise UsageError(
                f"{_where(self.whole, array)} holds Python objects (dtype {array.dtype}), which "
                "no two processes can share. Convert it: numbers to a dtype of numbers, texts "
                "to a fixed length (array.astype('U')) or to codes"
            )
        if type(array) not in (np.ndarray, np.memmap):
            raise UsageError(
                f"{_where(self.whole, array)} is a {type(array).__name__}, of which more than "
                "its numbers would have to be shared. Give plain arrays: np.asarray(...)"
            )
        order: Any = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
        flat = np.asarray(array).ravel(order)
        if flat.nbytes == 0:
            return _empty, (array.shape, array.dtype)
        raw: Any = flat.view(np.uint8)
        return _rebuilt, (pickle.PickleBuffer(raw), array.dtype, array.shape, order)


def _rebuilt(raw: Any, dtype: np.dtype[Any], shape: tuple[int, ...], order: Any) -> Any:
    return np.frombuffer(raw, np.uint8).view(dtype).reshape(shape, order=order)


def _empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    found = np.empty(shape, dtype)
    found.flags.writeable = False
    return found


def _column(series: Any) -> Any:
    """A plain array where the column is one; else what pandas uses, of which arrays are shared."""
    if str(series.dtype).startswith(("object", "str")):
        raise UsageError(
            f"the column {series.name!r} holds Python objects (dtype {series.dtype}), which no "
            "two processes can share. Convert it: column.astype('category') for texts"
        )
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.array


def _categorical(codes: Any, categories: list[Any], ordered: bool) -> Any:
    import pandas  # type: ignore[import-not-found,import-untyped,unused-ignore]

    return pandas.Categorical.from_codes(codes, categories=categories, ordered=ordered)


def _frame(names: list[Any], columns: list[Any], index: Any) -> Any:
    import pandas

    found = pandas.DataFrame(dict(enumerate(columns)), index=index, copy=False)
    found.columns = names
    return found


def _series(name: Any, column: Any, index: Any) -> Any:
    import pandas

    return pandas.Series(column, index=index, name=name, copy=False)


def _where(whole: Any, array: Any) -> str:
    """How a user would write down an array of the structure."""
    path = next((path for path, found in _walk(whole, "") if found is array), "")
    return f"the array data{path}" if path else "an array of the data"


def _walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    yield path, value
    if isinstance(value, dict):
        for key, part in value.items():
            yield from _walk(part, f"{path}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for i, part in enumerate(value):
            yield from _walk(part, f"{path}[{i}]")
