"""Cases of algorithms with a replay buffer."""

from __future__ import annotations

from benchmarks.accuracy.case import case

DISCRETE = [
    case(
        "dqn-cartpole",
        "dqn",
        "--buffer-size 10000 --timesteps 4000",
        "dqn mlp batch32",
        small=True,
    ),
    case(
        "dqn-acrobot-1m",
        "dqn",
        "--env Acrobot-v1 --buffer-size 1000000 --batch-size 128 --timesteps 8000",
        "dqn mlp replay-mostly-empty",
    ),
    case(
        "dqn-vector1024-full",
        "dqn",
        "--env vector:1024 --buffer-size 30000 --learning-starts 28000 --batch-size 256 "
        "--timesteps 32000",
        "dqn mlp replay-full",
    ),
    case(
        "dqn-vector16384-huge",
        "dqn",
        "--env vector:16384 --buffer-size 20000 --learning-starts 19000 --batch-size 64 "
        "--timesteps 20400",
        "dqn mlp replay-full",
    ),
    case(
        "dqn-vector4096-partly",
        "dqn",
        "--env vector:4096 --buffer-size 200000 --learning-starts 13000 --timesteps 15000",
        "dqn mlp replay-mostly-empty",
    ),
    case(
        "dqn-image48-full",
        "dqn",
        "--env image:48x48x3 --policy CnnPolicy --buffer-size 30000 --learning-starts 29000 "
        "--timesteps 31000",
        "dqn cnn image replay-full batch32",
    ),
    case(
        "dqn-image48-partly",
        "dqn",
        "--env image:48x48x3 --policy CnnPolicy --buffer-size 100000 --learning-starts 10000 "
        "--timesteps 11600",
        "dqn cnn image replay-mostly-empty batch32",
    ),
    case(
        "dqn-image48-optimized",
        "dqn",
        "--env image:48x48x3 --policy CnnPolicy --buffer-size 30000 --learning-starts 29000 "
        "--save-memory --timesteps 31000",
        "dqn cnn image replay-full optimize-memory",
    ),
    case(
        "dqn-image84-full",
        "dqn",
        "--env image:84x84x1 --policy CnnPolicy --buffer-size 30000 --learning-starts 29700 "
        "--train-freq 2 --timesteps 30200",
        "dqn cnn image replay-full batch32",
    ),
    case(
        "dqn-nstep3",
        "dqn",
        "--env vector:64 --n-step-returns 3 --buffer-size 20000 --batch-size 64 --timesteps 4000",
        "dqn mlp n-step",
        small=True,
    ),
    case(
        "dqn-gradient-all",
        "dqn",
        "--env vector:128 --n-envs 8 --buffer-size 50000 --train-freq 4 --gradient-steps -1 "
        "--batch-size 64 --timesteps 6000",
        "dqn mlp gradient-steps-all dummy8",
    ),
    case(
        "dqn-net1024",
        "dqn",
        "--env vector:64 --net-arch 1024 1024 1024 --batch-size 64 --timesteps 2000",
        "dqn mlp large-net",
    ),
    case(
        "dqn-batch2048",
        "dqn",
        "--env vector:256 --buffer-size 20000 --batch-size 2048 --learning-starts 3000 "
        "--net-arch 256 256 --timesteps 4200",
        "dqn mlp batch2048",
    ),
    case(
        "dqn-dict",
        "dqn",
        "--env dict:36x36x3+64 --policy MultiInputPolicy --buffer-size 10000 "
        "--learning-starts 9000 --timesteps 10500",
        "dqn multiinput dict replay-full",
    ),
    case(
        "qrdqn-cartpole",
        "dqn",
        "--algo qrdqn --buffer-size 50000 --timesteps 2400",
        "qrdqn mlp",
    ),
    case(
        "qrdqn-image48",
        "dqn",
        "--algo qrdqn --env image:48x48x3 --policy CnnPolicy --buffer-size 14000 "
        "--learning-starts 13600 --timesteps 14500",
        "qrdqn cnn image replay-full",
    ),
    case(
        "qrdqn-actions18",
        "dqn",
        "--algo qrdqn --env vector:128,actions=discrete18 --buffer-size 20000 --batch-size 64 "
        "--net-arch 256 256 --timesteps 1900",
        "qrdqn mlp",
    ),
]

CONTINUOUS = [
    case("sac-pendulum", "continuous", "--timesteps 900", "sac mlp box", small=True),
    case(
        "sac-vector512-full",
        "continuous",
        "--env vector:512,actions=box8 --buffer-size 40000 --learning-starts 40000 "
        "--timesteps 40300",
        "sac mlp replay-full",
    ),
    case("sac-sde", "continuous", "--use-sde --timesteps 1300", "sac mlp sde"),
    case(
        "sac-nstep3",
        "continuous",
        "--env vector:64,actions=box4 --n-step-returns 3 --buffer-size 100000 --timesteps 1300",
        "sac mlp n-step",
    ),
    case(
        "sac-gradient-all",
        "continuous",
        "--env vector:32,actions=box4 --n-envs 4 --train-freq 8 --gradient-steps -1 "
        "--buffer-size 50000 --timesteps 1300",
        "sac mlp gradient-steps-all",
    ),
    case(
        "sac-net512-batch512",
        "continuous",
        "--env vector:64,actions=box4 --net-arch 512 512 --batch-size 512 --buffer-size 50000 "
        "--timesteps 750",
        "sac mlp large-net",
    ),
    case(
        "sac-batch4096",
        "continuous",
        "--env vector:64,actions=box4 --net-arch 64 64 --batch-size 4096 "
        "--learning-starts 1000 --buffer-size 50000 --timesteps 1300",
        "sac mlp batch4096",
    ),
    case(
        "sac-image48",
        "continuous",
        "--env image:48x48x3,actions=box3 --policy CnnPolicy --buffer-size 5000 "
        "--learning-starts 4800 --batch-size 64 --timesteps 5000",
        "sac cnn image replay-full",
    ),
    case(
        "sac-dict",
        "continuous",
        "--env dict:36x36x3+32,actions=box3 --policy MultiInputPolicy --buffer-size 20000 "
        "--learning-starts 4000 --batch-size 64 --timesteps 4220",
        "sac multiinput dict",
    ),
    case(
        "sac-optimized",
        "continuous",
        "--env vector:2048,actions=box6 --buffer-size 30000 --learning-starts 29900 "
        "--save-memory --timesteps 30150",
        "sac mlp replay-full optimize-memory",
    ),
    case(
        "sac-float64",
        "continuous",
        "--env vector:1024,dtype=float64,actions=box6 --buffer-size 20000 "
        "--learning-starts 19900 --timesteps 20150",
        "sac mlp float64 replay-full",
    ),
    case("td3-pendulum", "continuous", "--algo td3 --timesteps 1500", "td3 mlp box"),
    case(
        "td3-mountaincar",
        "continuous",
        "--algo td3 --env MountainCarContinuous-v0 --buffer-size 50000 --n-envs 4 --timesteps 4000",
        "td3 mlp box",
    ),
    case(
        "td3-vector2048-full",
        "continuous",
        "--algo td3 --env vector:2048,actions=box8 --buffer-size 30000 "
        "--learning-starts 29900 --timesteps 30150",
        "td3 mlp replay-full",
    ),
    case(
        "ddpg-pendulum",
        "continuous",
        "--algo ddpg --buffer-size 200000 --timesteps 1200",
        "ddpg mlp box",
        small=True,
    ),
    case(
        "ddpg-net1024",
        "continuous",
        "--algo ddpg --env vector:64,actions=box4 --net-arch 1024 1024 1024 --batch-size 64 "
        "--timesteps 750",
        "ddpg mlp large-net",
    ),
    case("tqc-pendulum", "continuous", "--algo tqc --timesteps 1000", "tqc mlp box"),
    case(
        "tqc-vector-8",
        "continuous",
        "--algo tqc --env vector:256,actions=box6 --n-envs 8 --buffer-size 50000 "
        "--gradient-steps 2 --timesteps 1500",
        "tqc mlp dummy8",
    ),
    case("crossq-pendulum", "continuous", "--algo crossq --timesteps 800", "crossq mlp box"),
    case(
        "crossq-net1024",
        "continuous",
        "--algo crossq --env vector:128,actions=box4 --net-arch 1024 1024 --batch-size 128 "
        "--buffer-size 30000 --timesteps 700",
        "crossq mlp large-net",
    ),
]
