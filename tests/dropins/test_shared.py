"""Shared data within one process: what it gives, what it refuses, and when it is gone."""

from __future__ import annotations

import argparse
import collections
import dataclasses
import datetime
import functools
import gc
import re
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from memfit.dropins import shared
from memfit.dropins.sharing.data import shared_nbytes
from memfit.errors import UsageError
from tests.dropins.vecenv_envs import same

CALLS: list[Any] = []
SIZE = 3


@dataclasses.dataclass
class Config:
    """Values of a program."""

    size: int


def count(value: Any) -> None:
    """Not by a global, which would be one more value that a factory depends on."""
    sys._calls.append(value)  # type: ignore[attr-defined]


def load_level(number: int) -> dict[str, Any]:
    count(number)
    return {"map": np.full((4, SIZE), number), "name": f"level {number}", "parts": [np.arange(3.0)]}


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Any:
    CALLS.clear()
    sys._calls = CALLS  # type: ignore[attr-defined]
    yield
    gc.collect()
    assert not held()


def held() -> list[str]:
    """Shared data that this process has open."""
    found = []
    for fd in Path("/proc/self/fd").iterdir():
        try:
            found.append(str(fd.readlink()))
        except FileNotFoundError:
            continue
    return [name for name in found if re.match("/memfd:memfit-[0-9a-f]{32} ", name)]


def test_the_factory_runs_once_and_arrays_are_the_same_memory() -> None:
    first = shared(lambda: load_level(3))
    for _ in range(3):
        level = load_of(3)
        again = load_of(3)
    assert CALLS == [3, 3]  # the lambda above is other code
    assert same(first, level) and same(level, again)
    assert np.shares_memory(level["map"], again["map"])
    assert len(held()) == 2


def load_of(number: int) -> Any:
    return shared(lambda: load_level(number))


def test_other_values_are_other_data() -> None:
    levels = [load_of(number) for number in (1, 2, 1)]
    assert [int(level["map"][0, 0]) for level in levels] == [1, 2, 1] and CALLS == [1, 2]


def test_a_factory_may_index_with_an_ellipsis() -> None:
    def last() -> Any:
        return shared(lambda: np.arange(6).reshape(2, 3)[..., 1])

    one, other = last(), last()
    assert one.tolist() == [1, 4] and np.shares_memory(one, other)


def test_globals_that_a_factory_uses_count_too(monkeypatch: pytest.MonkeyPatch) -> None:
    before = load_of(1)
    monkeypatch.setattr(sys.modules[__name__], "SIZE", 5)
    after = load_of(1)
    assert before["map"].shape == (4, 3) and after["map"].shape == (4, 5)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (argparse.Namespace(n=1), argparse.Namespace(n=2)),
        (np.arange(3), np.arange(1, 4)),
        ({"a": {1, 2}}, {"a": {1, 3}}),
        (Path("a"), Path("b")),
        (Config(1), Config(2)),
        (collections.Counter("a"), collections.Counter("aa")),
        (datetime.date(2024, 1, 1), datetime.date(2024, 1, 2)),
        (functools.lru_cache(lambda: 1), functools.lru_cache(lambda: 2)),
        (functools.partial(int, "1"), functools.partial(int, "2")),
        (..., NotImplemented),
        (b"1", "1"),
        (1, 1.0),
        (1, True),
    ],
)
def test_values_are_told_apart(one: Any, other: Any) -> None:
    def of(value: Any) -> Any:
        def make() -> Any:
            count(value)
            return np.zeros(1)

        return shared(make)

    kept = [of(one), of(other), of(one)]
    assert len(CALLS) == 2 and len(kept) == 3


def test_arrays_cannot_be_written_to() -> None:
    level = load_of(3)
    with pytest.raises(ValueError, match="read-only"):
        level["map"][0] = 1
    with pytest.raises(ValueError, match="WRITEABLE"):
        level["map"].flags.writeable = True
    level["name"] = "mine"  # what is no array is each caller's own
    assert load_of(3)["name"] == "level 3"


def test_memory_goes_with_the_last_array() -> None:
    level = load_of(3)
    row = level["map"][1:2]
    del level
    gc.collect()
    assert len(held()) == 1 and load_of(3) and CALLS == [3]
    assert row.sum() == 9
    del row
    gc.collect()
    assert not held()
    load_of(3)
    assert CALLS == [3, 3]


structures = st.recursive(
    npst.arrays(
        dtype=st.one_of(
            npst.integer_dtypes(), npst.floating_dtypes(), npst.complex_number_dtypes(),
            npst.boolean_dtypes(), npst.datetime64_dtypes(), npst.unicode_string_dtypes(),
            npst.byte_string_dtypes(), npst.array_dtypes(max_size=3),
        ),
        shape=npst.array_shapes(min_dims=0, min_side=0, max_side=4),
    )
    | st.integers() | st.text() | st.none(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    | st.tuples(inner, inner),
    max_leaves=6,
)  # fmt: skip


@given(value=structures)
def test_any_structure_comes_back_the_same(value: Any) -> None:
    found = shared(lambda: value, key="any")
    assert same(found, value)
    assert not any(array.flags.writeable for array in arrays_of(found))


def arrays_of(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray):
        return [value]
    parts = value.values() if isinstance(value, dict) else value
    return (
        [a for p in parts for a in arrays_of(p)] if isinstance(value, (dict, list, tuple)) else []
    )


def test_views_and_orders_come_back_the_same() -> None:
    base = np.arange(24).reshape(4, 6)
    parts = [base[:, ::2], base.T, np.asfortranarray(base), base[::-1], np.array(5.0)]
    found = shared(lambda: parts, key="orders")
    assert same(found, parts)
    assert found[2].flags.f_contiguous and not found[2].flags.writeable


def test_an_array_that_is_there_twice_is_stored_once() -> None:
    big = np.zeros(100_000)
    found = shared(lambda: [big, {"same": big}], key="twice")
    assert shared_nbytes(lambda: 0, key="twice") < 1.1 * big.nbytes
    assert np.shares_memory(found[0], found[1]["same"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [np.zeros(2), np.array(["x", None])]}, r"data\['a'\]\[1\] holds Python objects"),
        (np.ma.array([1, 2], mask=[True, False]), "MaskedArray.*np.asarray"),
        ({"lock": threading.Lock()}, "cannot be shared.*Give arrays"),
        (bytes(2 << 20), "no arrays.*Put data into numpy arrays"),
        (lambda: 0, "cannot be shared"),
    ],
)
def test_what_cannot_be_shared_is_refused(value: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        shared(lambda: value, key="refused")


def test_wrong_calls_are_refused() -> None:
    with pytest.raises(UsageError, match="Give lambda"):
        shared(np.zeros(2))
    for wrong in ("", 3):
        with pytest.raises(UsageError, match="is no name"):
            shared(lambda: np.zeros(1), key=wrong)


def test_a_key_is_asked_for_where_code_does_not_tell() -> None:
    lock = threading.Lock()
    with open("/dev/null") as file:
        for value in (lock, file):
            with pytest.raises(UsageError, match="Give a key"):
                shared(lambda value=value: np.zeros(id(value) and 1))
    assert shared(lambda: np.zeros(id(lock) and 1), key="lock").shape == (1,)


def test_a_key_that_names_other_data_is_an_error() -> None:
    first = shared(lambda: np.zeros(3), key="level")
    assert first.shape == (3,)
    with pytest.raises(UsageError, match=r"key='level' already names other data.*test_shared"):
        shared(lambda: np.zeros(4), key="level")
    wherever = shared(lambda: np.zeros(3), key="level")  # the same code, elsewhere
    assert np.shares_memory(first, wherever)
    del first, wherever
    gc.collect()
    assert shared(lambda: np.zeros(4), key="level").shape == (4,)


def test_what_a_factory_raises_is_raised_and_leaves_nothing() -> None:
    def fails() -> Any:
        count(1)
        raise OSError("no such level")

    for _ in range(2):
        with pytest.raises(OSError, match="no such level"):
            shared(fails)
    assert len(CALLS) == 2


def test_factories_may_share_themselves() -> None:
    def outer() -> Any:
        return {"inner": shared(lambda: np.arange(5), key="inner").copy() * 2}

    assert shared(outer, key="outer")["inner"].tolist() == [0, 2, 4, 6, 8]


def test_threads_get_the_same_data() -> None:
    found: list[Any] = []
    threads = [threading.Thread(target=lambda: found.append(load_of(8))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert CALLS == [8] and len(found) == 8
    assert all(np.shares_memory(found[0]["map"], other["map"]) for other in found)


def test_columns_of_frames_are_shared() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "close": np.arange(50_000.0),
            "volume": np.arange(50_000),
            "when": pandas.date_range("2020-01-01", periods=50_000, freq="min"),
            "side": pandas.Categorical(["buy", "sell"] * 25_000),
        },
    )
    found = shared(lambda: {"prices": frame, "one": frame["close"]}, key="frame")
    again = shared(lambda: {"prices": frame, "one": frame["close"]}, key="frame")
    pandas.testing.assert_frame_equal(found["prices"], frame)
    pandas.testing.assert_series_equal(found["one"], frame["close"])
    for name in ("close", "volume"):
        mine, other = found["prices"][name].to_numpy(), again["prices"][name].to_numpy()
        assert np.shares_memory(mine, other) and not mine.flags.writeable
    names = pandas.DataFrame({"name": np.array(["a", "b"], object)})
    with pytest.raises(UsageError, match="column 'name' holds Python objects"):
        shared(lambda: names, key="names")
