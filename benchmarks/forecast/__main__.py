"""Command line of the benchmark: ``python -m benchmarks.forecast``: writes its table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

from benchmarks.forecast.runs import KINDS, READINGS, synthetic
from memfit.analyses.forecast import forecast
from memfit.model import Growth

RUNS, SEED = 1200, 20_261_116
HERE = Path(__file__).parent
LOW, HIGH = 0.85, 0.95
INTRODUCTION = f"""\
`make bench-forecast`: {RUNS:,} synthetic runs (seed {SEED}) are cut off at a random moment, and \
the forecast is held against the rest of the run. The limit is a height that the run reaches \
later, or has reached. Noise, rates, sizes, the rise and fall of updates and the length of the \
start are drawn anew for each."""


def main() -> None:
    draw = Random(SEED)
    told: dict[str, Counter[str]] = {kind: Counter() for kind in KINDS}
    covered: dict[str, list[bool]] = {kind: [] for kind in KINDS}
    unbounded = 0
    for _ in range(RUNS):
        run = synthetic(draw.choice(KINDS), draw)
        now = draw.randint(READINGS // 8, READINGS // 2)
        later = draw.randint(now + 50, READINGS - 1)
        limit = max(r.bytes for r in run.readings[:later])
        seen = run.readings[:now]
        found = forecast(seen, limit)
        told[run.kind][found.growth.value] += 1
        crossed = next(r.seconds for r in run.readings if r.bytes >= limit)
        if run.kind == "filling" and found.growth is Growth.LEAKING:
            unbounded += 1
        if crossed <= seen[-1].seconds or found.reaches_limit_at is None or found.low is None:
            continue
        covered[run.kind].append(
            found.low <= crossed and (found.high is None or crossed <= found.high)
        )
    (HERE / "README.md").write_text(_table(told, covered, unbounded))


def _table(told: dict[str, Counter[str]], covered: dict[str, list[bool]], unbounded: int) -> str:
    rows = []
    for kind, counts in told.items():
        hits = covered[kind]
        share = f"{sum(hits) / len(hits):.1%} of {len(hits)}" if hits else "no crossing ahead"
        names = ", ".join(f"{name} {count}" for name, count in counts.most_common())
        rows.append(f"| {kind} | {sum(counts.values())} | {names} | {share} |")
    every = [hit for hits in covered.values() for hit in hits]
    share = sum(every) / len(every)
    met = "met" if LOW <= share <= HIGH else "MISSED"
    ends = "met" if not unbounded else "MISSED"
    return "\n".join(
        [
            "# Forecasts",
            "",
            INTRODUCTION,
            "",
            "| run | runs | told as | crossing within the 90 % interval |",
            "|---|--:|---|--:|",
            *rows,
            "",
            (
                f"All crossings: {share:.1%} of {len(every)}; asked: 85 to 95 % ({met}). "
                f"Filling buffers told as unbounded: {unbounded}; asked: none ({ends})."
            ),
            "",
        ]
    )


if __name__ == "__main__":
    main()
