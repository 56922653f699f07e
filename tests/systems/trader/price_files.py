"""Files of prices for tests."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from pathlib import Path

from memfit.systems.trader.market import Array
from memfit.systems.trader.settings import COINS


def write_prices(file: Path, prices: Array, names: Sequence[str] = COINS) -> None:
    """Write prices as CSV that reads back to the same numbers."""
    with file.open("w", newline="", encoding="utf-8") as out:
        writer = csv.writer(out)
        writer.writerow(names)
        writer.writerows([repr(float(price)) for price in row] for row in prices)
