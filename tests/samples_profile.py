"""Profiles made by hand, for what is shown of them."""

from __future__ import annotations

from memfit.model import (
    BaselineChange,
    Counted,
    EnvCost,
    EnvReading,
    Growing,
    GrownHolder,
    GrowthKind,
    Judgement,
    MemoryVerdict,
    ObservationPart,
    Profile,
    Shareable,
    Site,
    Stepped,
)


def reading(frame: int, python: int, malloc: int, leg: int) -> EnvReading:
    return EnvReading(
        frame=frame,
        episode=frame // 20,
        seconds=frame / 1000,
        held=python + malloc,
        whole=30 << 20,
        counts={
            Counted.PYTHON: python,
            Counted.MALLOC: malloc,
            Counted.THREADS: 2,
            Counted.PROCESSES: 1,
            Counted.FILES: 5,
        },
        leg=leg,
        collected=True,
    )


def leaking() -> Profile:
    return Profile(
        target="game.envs:make_env",
        judgement=Judgement(
            verdict=MemoryVerdict.LEAKING,
            why="malloc grew in each of 2 legs, over 350 episodes, the last of which doubled their "
            "number",
            growing=(
                Growing(what=Counted.MALLOC, per_frame=56.0, per_episode=1120.0, low=1e3, high=2e3),
            ),
            bytes_per_frame=56.0,
            bytes_per_episode=1120.0,
            low=1000.0,
            high=1200.0,
            grown_bytes=392_000,
        ),
        kind=GrowthKind.ARRAYS,
        readings=tuple(
            reading(250 * (1 << leg), 12 << 20, (7 << 20) + 14_000 * (1 << leg), leg)
            for leg in range(5)
        ),
        holders=(
            GrownHolder(
                path="env.history[*]",
                bytes=380_000,
                what="arrays",
                owner="game.envs.Game",
                where="/home/someone/game/envs.py:13",
                elements=350,
                per_frame=54.2,
            ),
        ),
        sites=(
            Site(
                where="/home/someone/game/envs.py:21",
                bytes=51_200,
                count=100,
                by="/usr/lib/numpy/_core/numeric.py:232",
            ),
        ),
        stepped=Stepped(env="game.envs.Game", frames=4000, episodes=200),
        frames=4000,
        episodes=200,
        frames_per_second=12_000.0,
        peak_bytes=42 << 20,
        changed=(
            BaselineChange(name="bytes_per_frame", before=0.0, after=56.0, beyond_noise=True),
            BaselineChange(name="after warm-up", before=2e7, after=2.01e7, beyond_noise=False),
        ),
        notes=("a note",),
        seconds=7.5,
    )


def stable() -> Profile:
    return Profile(
        target="ninja",
        judgement=Judgement(
            verdict=MemoryVerdict.STABLE, why="what is in use changed by +32 bytes over 50 episodes"
        ),
        readings=(reading(250, 12 << 20, 7 << 20, 0), reading(1250, 12 << 20, 7 << 20, 1)),
        costs=(
            EnvCost(n_envs=1, workers=False, bytes=50 << 20, private=30 << 20),
            EnvCost(n_envs=4, workers=False, bytes=56 << 20, private=36 << 20),
            EnvCost(n_envs=1, workers=True, bytes=58 << 20, private=30 << 20, processes=2),
            EnvCost(n_envs=4, workers=True, bytes=76 << 20, private=30 << 20, processes=5),
        ),
        bytes_per_env=2.0 * (1 << 20),
        bytes_per_worker=6.0 * (1 << 20),
        stepped=Stepped(
            env="memfit.systems.ninja.env.NinjaEnv",
            frames=1250,
            episodes=62,
            observation=(
                ObservationPart(
                    key="frames", dtype="uint8", shape=(84, 84, 4), bytes=28_224, repeats=0.75
                ),
                ObservationPart(
                    key="state",
                    dtype="float32",
                    shape=(30,),
                    bytes=120,
                    fresh=False,
                    view_of=3076,
                    within="all",
                ),
            ),
            allocated_per_step=30_000,
            copied_per_step=28_224,
            shareable=(Shareable(path="env.level", bytes=1 << 20, copies=2, saves_bytes=1 << 20),),
        ),
        frames=1250,
        episodes=62,
        frames_per_second=9_000.0,
        peak_bytes=50 << 20,
        seconds=9.0,
    )
