"""A user's own prices: a CSV or Parquet file with one column a coin, one row a step."""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from memfit.errors import MissingExtra, UsageError
from memfit.systems.trader.market import Array
from memfit.systems.trader.settings import ACTIONS, COINS

# Columns that say when, and not how much.
_TIMES = ("time", "date", "datetime", "timestamp")
_EXPECTED = f"{ACTIONS} columns of prices with a header, such as {','.join(COINS)}"


def read_prices(file: Path) -> Array:
    """The prices in a file: (rows, coins). A column named time, date or timestamp is left out."""
    ending = file.suffix.lower()
    if ending not in (".csv", ".parquet"):
        raise UsageError(f"{file} is neither .csv nor .parquet: give a file of {_EXPECTED}")
    if not file.is_file():
        raise UsageError(f"there is no file {file}: give the path of a CSV or Parquet file")
    try:
        names, rows = _csv(file) if ending == ".csv" else _parquet(file)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(
            f"{file} cannot be read as {ending[1:]} ({error}): give {_EXPECTED}"
        ) from None
    return _checked(file, names, rows)


def _csv(file: Path) -> tuple[list[str], Array]:
    with file.open(newline="", encoding="utf-8-sig") as lines:
        reader = csv.reader(lines)
        header = [name.strip() for name in next(reader, [])]
        kept = [i for i, name in enumerate(header) if name.lower() not in _TIMES]
        _check_names(file, [header[i] for i in kept])
        rows = []
        for line in reader:
            if not line:
                continue
            if len(line) != len(header):
                raise UsageError(
                    f"{file}, line {reader.line_num}: {len(line)} columns, but the header has "
                    f"{len(header)}: fix that line"
                )
            rows.append([_number(file, reader.line_num, header[i], line[i]) for i in kept])
    prices = np.array(rows, dtype=np.float64).reshape(len(rows), len(kept))
    return [header[i] for i in kept], prices


def _number(file: Path, line: int, name: str, text: str) -> float:
    text = text.strip()
    try:
        return float(text) if text else math.nan
    except ValueError:
        raise UsageError(
            f"{file}, line {line}, column {name}: {text!r} is no number: fix that line"
        ) from None


def _parquet(file: Path) -> tuple[list[str], Array]:
    try:
        from pyarrow import ArrowException, parquet
    except ModuleNotFoundError:
        raise MissingExtra(
            f"{file}: Parquet files need pyarrow, which is not installed: pip install pyarrow, or "
            "give the prices as .csv"
        ) from None
    try:
        table = parquet.read_table(file)
    except (ArrowException, OSError) as error:
        first = str(error).splitlines()[0]
        raise UsageError(f"{file} cannot be read as parquet ({first}): give {_EXPECTED}") from None
    names = [name for name in table.column_names if name.lower() not in _TIMES]
    _check_names(file, names)
    try:
        arrays = [np.asarray(table.column(name).to_numpy(), dtype=np.float64) for name in names]
    except (TypeError, ValueError):
        raise UsageError(f"{file} has columns that are no numbers: give {_EXPECTED}") from None
    return names, np.stack(arrays, axis=1)


def _check_names(file: Path, names: Sequence[str]) -> None:
    if len(names) != ACTIONS:
        found = ", ".join(names[:10]) or "nothing"
        raise UsageError(f"{file} has {len(names)} columns of prices ({found}): give {_EXPECTED}")
    if len(set(names)) != len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise UsageError(f"{file} has two columns {twice!r}: give each coin once")


def _checked(file: Path, names: Sequence[str], prices: Array) -> Array:
    """Refuse what is no price, and say where the first of it is."""
    for wrong, what in (
        (np.isnan(prices), "is missing (NaN)"),
        (np.isinf(prices), "is infinite"),
        (prices <= 0, "is not above zero"),
    ):
        if wrong.any():
            row, column = (int(i) for i in np.argwhere(wrong)[0])
            raise UsageError(
                f"{file}: {int(wrong.sum())} of {prices.size} prices cannot be used; the first, "
                f"{names[column]} in data row {row + 1}, {what}: fill or remove such rows"
            )
    return prices
