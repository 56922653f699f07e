"""What is optimized: scripts to tune on, scripts for the report alone, the reference systems."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
TUNING, EARLIER, REPORT, SYSTEM = "tuning", "earlier", "report", "system"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One target of `memfit optimize`; a system also has the program that was made to fit by hand.

    Scripts of the report were written when the code was done, and nothing was changed after them.
    Those of an earlier report, to which the code was then mended, are a group of their own.
    """

    name: str
    group: str
    words: tuple[str, ...]
    fitted: tuple[str, ...] = ()


def _script(name: str, group: str) -> Case:
    return Case(name=name, group=group, words=(str(SCRIPTS / f"{name}.py"),))


def _system(name: str, system: str, options: str, fitted: str = "") -> Case:
    program = ("python", "-m", f"memfit.systems.{system}", *options.split(), "--quiet")
    return Case(
        name=name,
        group=SYSTEM,
        words=("--", *program, "--as-described"),
        fitted=("--", *program, *fitted.split()),
    )


_TUNING = (
    *("ppo_stack", "ppo_wide_rollout", "a2c_stack", "dqn_stack", "sac_wide", "td3_float64"),
    *("ppo_float64", "ppo_workers", "ppo_large_batch", "ppo_dict", "maskable"),
    *("loop_ppo", "loop_dqn", "ppo_levels"),
)
_EARLIER = (
    *("qrdqn_report", "trpo_report", "ddpg_float64_report", "workers_report", "config_report"),
    *("loop_reinforce_report", "sac_dict_report"),
)
_REPORT = (
    *("tutorial_ppo_fresh", "tutorial_dqn_pixels_fresh", "zoo_sac_fresh", "zoo_ppo_pixels_fresh"),
    *("her_goals_fresh", "recurrent_fresh", "market_tables_fresh", "dict_float64_fresh"),
    *("subproc_zoo_fresh", "wide_batch_fresh", "ddpg_default_replay_fresh", "td3_two_envs_fresh"),
    *("loop_dqn_clean_fresh", "loop_ppo_clean_fresh", "loop_sac_lists_fresh"),
)
CASES = (
    *(_script(name, TUNING) for name in _TUNING),
    *(_script(name, EARLIER) for name in _EARLIER),
    *(_script(name, REPORT) for name in _REPORT),
    _system("fighter", "fighter", "--n-steps 256 --batch-size 256 --epochs 1 --iterations 3"),
    _system("ninja", "ninja", "--n-envs 8 --steps 4096 --epochs 1"),
    _system("ninja-graphs", "ninja", "--graphs --n-envs 2 --steps 1024 --epochs 1"),
    _system("drone", "drone", "--agents 20 --iterations 3"),
    _system("trader", "trader", ""),
)
