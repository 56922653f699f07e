"""What is optimized: scripts to tune on, scripts for the report alone, the reference systems."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SCRIPTS = Path(__file__).parent / "scripts"
TUNING, REPORT, SYSTEM = "tuning", "report", "system"


@dataclass(frozen=True, kw_only=True)
class Case:
    """One target of `memfit optimize`; a system also has the program that was made to fit by hand.

    Scripts of the report were written when the code was done, and nothing was changed after them.
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
    *("loop_ppo", "loop_dqn"),
)
_REPORT = (
    *("qrdqn_report", "trpo_report", "ddpg_float64_report", "workers_report", "config_report"),
    *("loop_reinforce_report", "sac_dict_report"),
)
CASES = (
    *(_script(name, TUNING) for name in _TUNING),
    *(_script(name, REPORT) for name in _REPORT),
    _system("fighter", "fighter", "--n-steps 256 --batch-size 256 --epochs 1 --iterations 3"),
    _system("ninja", "ninja", "--n-envs 8 --steps 4096 --epochs 1"),
    _system("ninja-graphs", "ninja", "--graphs --n-envs 2 --steps 1024 --epochs 1"),
    _system("drone", "drone", "--agents 20 --iterations 3"),
    _system("trader", "trader", ""),
)
