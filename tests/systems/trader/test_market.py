"""Prices are the same for the same seed, features look back only, and bad files are refused."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from tests.systems.trader.price_files import write_prices

from memfit.errors import MissingExtra, UsageError
from memfit.systems.trader.market import (
    LARGEST,
    features_of,
    market_of,
    rows_needed,
    synthetic,
)
from memfit.systems.trader.price_file import read_prices
from memfit.systems.trader.settings import ACTIONS, COINS, EPISODE, FEATURES


def test_a_seed_is_a_market() -> None:
    first, again, other = synthetic(500, 3), synthetic(500, 3), synthetic(500, 4)
    assert (first == again).all()
    assert (first != other).any()
    assert first.shape == (500, ACTIONS)
    assert (first > 0).all() and np.isfinite(first).all()


def test_coins_move_together_and_have_trends_that_last() -> None:
    moves = np.diff(np.log(synthetic(12_000, 0)), axis=0)
    correlation = np.corrcoef(moves.T)[np.triu_indices(ACTIONS, 1)]
    assert correlation.min() > 0.3 and correlation.max() < 0.8
    past, coming = moves[:-1], moves[1:]
    assert np.corrcoef(past.ravel(), coming.ravel())[0, 1] > 0.05


def test_features_are_9_a_coin_bounded_and_finite() -> None:
    features = features_of(synthetic(400, 0))
    assert features.shape == (400, ACTIONS * FEATURES) and features.dtype == np.float32
    assert np.isfinite(features).all() and np.abs(features).max() <= LARGEST
    assert (features[60:].std(0) > 0.05).all(), "every feature says something"


def test_features_know_nothing_of_the_future() -> None:
    prices = synthetic(400, 0)
    changed = prices.copy()
    changed[301:] *= np.linspace(1, 3, 99)[:, None]
    assert (features_of(prices)[:301] == features_of(changed)[:301]).all()
    assert (features_of(prices)[301:] != features_of(changed)[301:]).any()


def test_prices_that_stand_still_have_features_too() -> None:
    assert np.isfinite(features_of(np.ones((200, ACTIONS)))).all()


@pytest.mark.parametrize("lookback", [1, 3, 200])
def test_enough_rows_are_just_enough(lookback: int) -> None:
    need = rows_needed(lookback)
    market = market_of(synthetic(need, 0), lookback)
    from memfit.systems.trader.portfolio import Portfolios

    for held_out in (False, True):
        portfolios = Portfolios(market, 20, lookback=lookback, held_out=held_out)
        for _ in range(EPISODE):
            portfolios.step(np.zeros((20, ACTIONS)))
    with pytest.raises(UsageError, match="give a longer file"):
        market_of(synthetic(need - 1, 0), lookback)


def test_a_csv_file_reads_back_to_the_same_numbers(tmp_path: Path) -> None:
    prices = synthetic(50, 1)
    write_prices(tmp_path / "p.csv", prices)
    assert (read_prices(tmp_path / "p.csv") == prices).all()


def test_a_column_of_times_is_left_out(tmp_path: Path) -> None:
    lines = ["Timestamp," + ",".join(COINS), "2024-01-01 00:00," + ",".join("1234567")]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n\n")
    assert read_prices(tmp_path / "p.csv").tolist() == [[1, 2, 3, 4, 5, 6, 7]]


HEADER = ",".join(COINS)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{HEADER}\n1,2,3,nan,5,6,7\n", "XRP in data row 1, is missing (NaN): fill or remove"),
        (f"{HEADER}\n1,2,3,4,5,6,7\n1,2,3,,5,6,7\n", "XRP in data row 2, is missing"),
        (f"{HEADER}\n1,2,3,inf,5,6,7\n", "is infinite"),
        (f"{HEADER}\n1,2,3,0,5,6,7\n", "is not above zero"),
        (f"{HEADER}\n1,2,3,-4,5,6,7\n", "is not above zero"),
        (f"{HEADER}\n1,2,3,four,5,6,7\n", "line 2, column XRP: 'four' is no number"),
        (f"{HEADER}\n1,2,3\n", "line 2: 3 columns, but the header has 7"),
        ("BTC,ETH\n1,2\n", "2 columns of prices (BTC, ETH): give 7 columns"),
        ("", "0 columns of prices (nothing)"),
        ("A,A,B,C,D,E,F\n1,2,3,4,5,6,7\n", "two columns 'A'"),
        ("\x00\x01", "1 columns of prices"),
    ],
)
def test_a_bad_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "p.csv"
    file.write_text(text)
    with pytest.raises(UsageError) as refused:
        read_prices(file)
    assert told in str(refused.value)


def test_what_is_no_text_or_no_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_bytes(b"\xff\xfe\x00\x80" * 10)
    with pytest.raises(UsageError, match="cannot be read as csv"):
        read_prices(tmp_path / "p.csv")
    with pytest.raises(UsageError, match="there is no file"):
        read_prices(tmp_path / "missing.csv")
    with pytest.raises(UsageError, match=r"neither \.csv nor"):
        read_prices(tmp_path / "p.txt")


def test_parquet_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "p.parquet").write_bytes(b"PAR1")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match="pip install pyarrow"):
        read_prices(tmp_path / "p.parquet")


def test_parquet_reads_back_to_the_same_numbers(tmp_path: Path) -> None:
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    prices = synthetic(50, 1)
    columns = {name: prices[:, i] for i, name in enumerate(COINS)}
    parquet.write_table(arrow.table(columns), tmp_path / "p.parquet")
    assert (read_prices(tmp_path / "p.parquet") == prices).all()
    (tmp_path / "bad.parquet").write_bytes(b"nothing of the kind")
    with pytest.raises(UsageError, match="cannot be read as parquet"):
        read_prices(tmp_path / "bad.parquet")


@pytest.mark.torch  # optuna comes with it
def test_prices_do_not_need_torch() -> None:
    """The study's own process, and its workers, stay small."""
    import subprocess

    code = (
        "import sys, memfit.systems.trader.study, memfit.systems.trader.rollout\n"
        "print(*{'torch', 'gymnasium'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not done.stdout.strip()
