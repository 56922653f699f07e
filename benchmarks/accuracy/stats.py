"""The figures of the table, from results by case."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MARGINS = (0.90, 0.925, 0.95, 0.975, 1.025, 1.05, 1.075, 1.10)

Results = dict[str, dict[str, Any]]


def error(predicted: float, true: float) -> float:
    """Return how far a prediction is off, as a share of the truth, negative when too low."""
    return (predicted - true) / true


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile, between the two nearest values where it falls between them."""
    ordered = sorted(values)
    place = (len(ordered) - 1) * share
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


@dataclass(frozen=True)
class Spread:
    """Median, 95th percentile and worst of some values; None of each when there are none."""

    median: float | None
    p95: float | None
    worst: float | None

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Sum values up."""
        if not values:
            return cls(None, None, None)
        return cls(percentile(values, 0.5), percentile(values, 0.95), max(values))


def true_peaks(truth: Results) -> dict[str, int]:
    """Return the peaks of the runs that did not fail."""
    return {name: result["peak_bytes"] for name, result in truth.items() if result["ok"]}


def pairs(predictions: Results, truth: dict[str, int], key: str) -> dict[str, tuple[int, int]]:
    """Return prediction and truth of every case that has both."""
    return {
        name: (predictions[name][key], true)
        for name, true in truth.items()
        if name in predictions and predictions[name].get(key) is not None
    }


def errors(predictions: Results, truth: dict[str, int], key: str) -> list[float]:
    """Return the sizes of the errors of a stage."""
    return [abs(error(*pair)) for pair in pairs(predictions, truth, key).values()]


@dataclass(frozen=True)
class Summary:
    """How well one way of predicting does over all cases."""

    predicted: int
    missing: int
    error: Spread
    above_upper: float | None
    slack: float | None
    verdicts_right: float | None
    seconds: Spread


def summarize(predictions: Results, truth: dict[str, int]) -> Summary:
    """Compare the predictions of a stage with the truth."""
    peaks = pairs(predictions, truth, "peak_bytes")
    uppers = pairs(predictions, truth, "upper_bytes")
    above = [true > upper for upper, true in uppers.values()]
    slacks = [error(upper, true) for upper, true in uppers.values()]
    seconds = [predictions[name]["seconds"] for name in peaks]
    return Summary(
        predicted=len(peaks),
        missing=len(truth) - len(peaks),
        error=Spread.of([abs(error(*pair)) for pair in peaks.values()]),
        above_upper=sum(above) / len(above) if above else None,
        slack=percentile(slacks, 0.5) if slacks else None,
        verdicts_right=verdicts_right(list(peaks.values())),
        seconds=Spread.of(seconds),
    )


def verdicts_right(peaks: Sequence[tuple[int, int]]) -> float | None:
    """Return the share of right answers to "does it fit" for limits around the true peak."""
    answers = [
        (predicted <= true * margin) == (true <= true * margin)
        for predicted, true in peaks
        for margin in MARGINS
    ]
    return sum(answers) / len(answers) if answers else None
