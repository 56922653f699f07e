"""Turns the results into README.md; targets that are missed stay visible."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

MB = 1_000_000
MIB = 1 << 20
BASE = "stable-baselines3"
HEAD = (
    "# Speed: what the drop-ins save, and what they cost\n\n"
    "`make bench-speed` measures these, each beside the part that it replaces, in one process "
    'and in turns. Times are those of the processor (all threads), medians; "least" is the '
    "ratio of the quickest rounds, which other work on the machine disturbs least. A target "
    "is met when both ratios are. Bytes are those of all arrays of a buffer.\n"
)


def met(fine: bool) -> str:
    return "met" if fine else "**missed**"


def write(results: Path, readme: Path) -> None:
    """All sections for which there are results."""
    parts = [HEAD]
    for name, section in SECTIONS.items():
        file = results / f"{name}.json"
        if file.exists():
            found = json.loads(file.read_text())
            load = f"{found['load_before']} before, {found['load_after']} after"
            said = f"Load of the machine, with the stages before: {load}.\n"
            parts += [section(found), said]
            # Said by hand where a result is not one run of the present code.
            parts += [f"Note: {found['note']}\n"] if "note" in found else []
    readme.write_text("\n".join(parts))


def rollout(found: Any) -> str:
    lines = ["## Rollout buffers\n"]
    for name, target in (("history", 60.0), ("pixels", 3.9)):
        one = found[name]
        steps, envs, *shape = one["shape"]
        held = one["bytes"]
        lines += [
            (
                f"{envs} envs x {steps} steps of {tuple(shape)} {one['dtype']}, one new row each: "
                f"{held[BASE] / MB:.2f} MB, with memfit {held['memfit'] / MB:.2f} MB, "
                f"{one['times_fewer']:.1f} times fewer (asked: {target:g}, "
                f"{met(one['times_fewer'] >= target)}). Minibatches that are not equal to the bit: "
                f"{one['wrong_minibatches']}.\n"
            ),
            "| epoch in minibatches of | stable-baselines3 | memfit | ratio | least | asked |",
            "|--:|--:|--:|--:|--:|---|",
        ]
        for batch, times in one["epochs"].items():
            mine = times["memfit"]
            asked = f"at most 1: {met(max(mine['ratio'], mine['least_ratio']) <= 1)}"
            lines.append(
                f"| {batch} | {times[BASE]['median_ms']:.1f} ms | {mine['median_ms']:.1f} ms "
                f"| {mine['ratio']:.2f} | {mine['least_ratio']:.2f} | {asked} |"
            )
        adding = one["add"]
        lines.append(
            f"\nAdding a whole rollout, with the comparison of every observation: "
            f"{adding['memfit']['median_ms']:.0f} ms, {adding['memfit']['ratio']:.2f} times "
            f"as long.\n"
        )
    return "\n".join(lines)


def ppo(found: Any) -> str:
    lines = [
        "## Peak of PPO on stacked pixels\n",
        (
            "Envs x steps of (4, 84, 84) uint8, CnnPolicy, each run a process of its own; the most "
            "that was resident, median of runs. Asked: lower by the flatten copy and half of three "
            "minibatches. The library frees what it flattened before it computes gradients: the "
            "copy is at the peak only where the rollout is larger than all that an update needs; "
            "else what is saved is mostly the difference of the two buffers.\n"
        ),
        (
            "| rollout | minibatch | runs | stable-baselines3 | memfit | lower by | asked "
            "| same parameters |"
        ),
        "|---|--:|--:|--:|--:|--:|---|---|",
    ]
    for batch, one in found.items():
        if not isinstance(one, dict):
            continue
        peaks = {k: sorted(v)[len(v) // 2] / MB for k, v in one["peaks"].items()}
        asked = f"{one['asked'] / MB:.1f} MB: {met(one['lower_by'] >= one['asked'])}"
        same = "to the bit" if one["same_parameters"] else "**no**"
        lines.append(
            f"| {batch} | {len(one['peaks'][BASE])} "
            f"| {peaks[BASE]:.0f} MB | {peaks['memfit']:.0f} MB "
            f"| {one['lower_by'] / MB:.1f} MB | {asked} | {same} |"
        )
    return "\n".join([*lines, ""])


def replay(found: Any) -> str:
    asked = {"memfit": (720, 1.0), "memfit, zstd": (60, 2.0), "memfit, lz4": (60, 2.0)}
    lines = [
        "## Replay buffers on Atari frames\n",
        (
            f"{found['transitions']:,} stacked transitions of six games (random actions), episodes "
            "cut at 500 steps. `resident` is what the process grew by; sample(32) in turns with "
            "stable-baselines3's. cpprb and Tianshou give numpy arrays, the others tensors.\n"
        ),
        (
            "| buffer | arrays | resident | wrong next observations at cuts | sample(32) | ratio "
            "| least | asked |"
        ),
        "|---|--:|--:|--:|--:|--:|--:|---|",
    ]
    for name, one in {**found["rows"], **found["rivals"]}.items():
        if "why_not" in one:
            lines.append(f"| {name} | | | | | | | not run: {one['why_not']} |")
            continue
        size, times = one.get("bytes"), one["sample"]
        target = ""
        if name in asked and size is not None:
            most, slower = asked[name]
            ratio = max(times["ratio"], times["least_ratio"])
            target = f"{most} MB: {met(size <= most * MB)}; {slower:g}: {met(ratio <= slower)}"
        held = f"{size / MB:.1f} MB" if size is not None else ""
        lines.append(
            f"| {name} | {held} | {one['resident'] / MB:.1f} MB "
            f"| {one['wrong_at_cuts']} of {one['cuts']} | {times['median_ms']:.2f} ms "
            f"| {times['ratio']:.2f} | {times['least_ratio']:.2f} | {target} |"
        )
    many = found["thousand_cuts"]
    wrong = ", ".join(f"{name} {n}" for name, n in found["wrong_samples"].items())
    lines += [
        "",
        f"Of 20 samples with the same seeds, different from stable-baselines3's: {wrong}.",
        (
            f"Episodes cut at {many['limit']} steps: {many['wrong']} wrong next observations at "
            f"{many['cuts']:,} cuts (asked: 0 at 1,000, "
            f"{met(many['wrong'] == 0 and many['cuts'] >= 1000)}); "
            f"{many['bytes'] / MB:.1f} MB.\n"
        ),
    ]
    return "\n".join(lines)


def workers(found: Any) -> str:
    lines = [
        "## Workers of vector envs\n",
        (
            "CartPole by `make_vec_env`, SubprocVecEnv as it is by default / LightVecEnv, each "
            "with its own number of workers. Private memory is that of the largest worker, "
            "and of all workers; steps a second are of all envs, by the clock on the wall, in "
            "turns; the ratio is LightVecEnv's to SubprocVecEnv's, with its quartiles.\n"
        ),
        ("| envs | workers | private, a worker | all workers | asked | steps/s | ratio | asked |"),
        "|--:|--:|--:|--:|---|--:|--:|---|",
    ]
    for envs, one in found["envs"].items():
        both = (BASE, "memfit")
        held = " / ".join(f"{one['private'][name] / MIB:.1f} MiB" for name in both)
        every = " / ".join(f"{one['private_sum'][name] / MIB:.0f} MiB" for name in both)
        rates = " / ".join(f"{one['steps_per_second'][name]:,.0f}" for name in both)
        count = " / ".join(str(one["workers"][name]) for name in both)
        low, high = one["ratio_quartiles"]
        lines.append(
            f"| {envs} | {count} | {held} | {every} "
            f"| at most 8 MiB: {met(one['private']['memfit'] <= 8 * MIB)} | {rates} "
            f"| {one['ratio']:.2f} ({low:.2f} to {high:.2f}) "
            f"| at least 1: {met(one['ratio'] >= 1)} |"
        )
    return "\n".join([*lines, ""])


def microbatch(found: Any) -> str:
    lines = [
        "## Micro-batched PPO on pixels\n",
        (
            "4 envs x 256 steps of (4, 84, 84) uint8, CnnPolicy, two rollouts of two epochs, each "
            "run a process of its own. `update` is the peak less what was resident when the model "
            "was built; time is the processor's within train(), median of runs, and its ratio to "
            "whole minibatches. Asked of the parameters: within 1e-6 of theirs, relative. The row "
            "with one thread is the library alone, its sums in another order: a number that a ReLU "
            "has near zero then falls on the other side, as with some micro-batches.\n"
        ),
        (
            "| minibatch | at once | runs | peak | update | times fewer | time | ratio | least "
            "| parameters apart |"
        ),
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|",
    ]
    for batch, rows in found.items():
        if not isinstance(rows, dict):
            continue
        whole = rows[BASE]
        for name, one in rows.items():
            update = one["peak_bytes"] - one["built_bytes"]
            times = (whole["peak_bytes"] - whole["built_bytes"]) / update
            plain = name.startswith(BASE)
            apart = f"{one['apart']:.1e}" + ("" if plain else f": {met(one['apart'] <= 1e-6)}")
            lines.append(
                f"| {batch} | {'all: ' + name if plain else name} | {one['runs']} "
                f"| {one['peak_bytes'] / MB:.0f} MB | {update / MB:.0f} MB | {times:.1f} "
                f"| {one['seconds']:.1f} s | {one['seconds'] / whole['seconds']:.2f} "
                f"| {one['least_seconds'] / whole['least_seconds']:.2f} | {apart} |"
            )
    return "\n".join([*lines, ""])


SECTIONS = {
    "rollout": rollout,
    "ppo": ppo,
    "replay": replay,
    "workers": workers,
    "microbatch": microbatch,
}
