"""Cases of PPO and A2C."""

from __future__ import annotations

from benchmarks.accuracy.case import case

PPO = [
    case("ppo-cartpole", "ppo", "--timesteps 6144", "ppo mlp epochs10"),
    case(
        "ppo-cartpole-8",
        "ppo",
        "--n-envs 8 --n-steps 256 --batch-size 256 --n-epochs 6 --timesteps 12288",
        "ppo mlp dummy8",
    ),
    case(
        "ppo-cartpole-32",
        "ppo",
        "--n-envs 32 --n-steps 128 --batch-size 512 --timesteps 20480",
        "ppo mlp dummy32 epochs10",
        small=True,
    ),
    case(
        "ppo-mountaincar",
        "ppo",
        "--env MountainCarContinuous-v0 --n-envs 4 --n-steps 512 --batch-size 128 --n-epochs 5 "
        "--timesteps 10240",
        "ppo mlp box",
    ),
    case(
        "ppo-vector64-box",
        "ppo",
        "--env vector:64,actions=box6 --n-envs 4 --n-steps 1024 --batch-size 256 --n-epochs 4 "
        "--timesteps 16384",
        "ppo mlp box",
    ),
    case(
        "ppo-vector1024",
        "ppo",
        "--env vector:1024 --n-envs 8 --n-steps 1024 --batch-size 512 --n-epochs 3 "
        "--timesteps 24576",
        "ppo mlp",
    ),
    case(
        "ppo-vector4096",
        "ppo",
        "--env vector:4096 --n-envs 16 --n-steps 1024 --batch-size 1024 --n-epochs 1 "
        "--timesteps 49152",
        "ppo mlp dummy16 epochs1 large-rollout",
    ),
    case(
        "ppo-vector16384-huge",
        "ppo",
        "--env vector:16384 --n-envs 16 --n-steps 1024 --batch-size 4096 --n-epochs 1 "
        "--timesteps 49152",
        "ppo mlp dummy16 epochs1 large-rollout batch4096",
    ),
    case(
        "ppo-float64",
        "ppo",
        "--env vector:512,dtype=float64 --n-envs 8 --n-steps 1024 --batch-size 512 --n-epochs 3 "
        "--timesteps 24576",
        "ppo mlp float64",
    ),
    case(
        "ppo-float64-large",
        "ppo",
        "--env vector:2048,dtype=float64,actions=box2 --n-envs 16 --n-steps 1024 "
        "--batch-size 2048 --n-epochs 2 --timesteps 49152",
        "ppo mlp float64 large-rollout",
    ),
    case(
        "ppo-net1024",
        "ppo",
        "--env vector:64 --n-envs 4 --n-steps 512 --batch-size 256 --n-epochs 2 "
        "--net-arch 1024 1024 1024 --timesteps 6144",
        "ppo mlp large-net",
    ),
    case(
        "ppo-net512-batch2048",
        "ppo",
        "--env vector:256,actions=box12 --n-envs 8 --n-steps 512 --batch-size 2048 --n-epochs 4 "
        "--net-arch 512 512 --timesteps 12288",
        "ppo mlp large-net batch2048",
    ),
    case(
        "ppo-batch4096",
        "ppo",
        "--env vector:128 --n-envs 16 --n-steps 512 --batch-size 4096 --n-epochs 5 "
        "--net-arch 256 256 --timesteps 24576",
        "ppo mlp batch4096",
    ),
    case(
        "ppo-batch-over-half",
        "ppo",
        "--env vector:512 --n-envs 4 --n-steps 512 --batch-size 1500 --n-epochs 5 "
        "--net-arch 256 256 --timesteps 8192",
        "ppo mlp batch-over-half",
    ),
    case(
        "ppo-batch32",
        "ppo",
        "--env vector:16 --n-envs 2 --n-steps 512 --batch-size 32 --n-epochs 4 --timesteps 8192",
        "ppo mlp batch32",
    ),
    case(
        "ppo-sde",
        "ppo",
        "--env Pendulum-v1 --n-envs 4 --n-steps 512 --batch-size 256 --n-epochs 4 --use-sde "
        "--timesteps 12288",
        "ppo mlp sde box",
    ),
    case(
        "ppo-multidiscrete",
        "ppo",
        "--env vector:32,actions=multidiscrete8 --n-envs 4 --n-steps 512 --batch-size 128 "
        "--n-epochs 3 --timesteps 8192",
        "ppo mlp multidiscrete",
    ),
    case(
        "ppo-multibinary",
        "ppo",
        "--env vector:32,actions=multibinary16 --n-envs 4 --n-steps 512 --batch-size 128 "
        "--n-epochs 3 --timesteps 8192",
        "ppo mlp multibinary",
    ),
    case(
        "ppo-level5-16",
        "ppo",
        "--env vector:32,level=5 --n-envs 16 --n-steps 256 --batch-size 512 --n-epochs 4 "
        "--timesteps 16384",
        "ppo mlp env-state",
    ),
    case(
        "ppo-level20-32",
        "ppo",
        "--env vector:64,level=20 --n-envs 32 --n-steps 128 --batch-size 512 --n-epochs 4 "
        "--timesteps 16384",
        "ppo mlp env-state dummy32",
    ),
    case(
        "ppo-one-thread",
        "one_thread",
        "--timesteps 6144",
        "ppo mlp one-thread env-by-id",
    ),
    case(
        "ppo-image36",
        "ppo",
        "--env image:36x36x3 --policy CnnPolicy --n-envs 4 --n-steps 128 --batch-size 128 "
        "--n-epochs 2 --timesteps 1536",
        "ppo cnn image",
        small=True,
    ),
    case(
        "ppo-image64",
        "ppo",
        "--env image:64x64x3 --policy CnnPolicy --n-envs 8 --n-steps 128 --batch-size 256 "
        "--n-epochs 1 --timesteps 4096",
        "ppo cnn image epochs1",
    ),
    case(
        "ppo-image84-batch1024",
        "ppo",
        "--env image:84x84x4 --policy CnnPolicy --n-envs 8 --n-steps 128 --batch-size 1024 "
        "--n-epochs 1 --timesteps 3072",
        "ppo cnn image epochs1",
    ),
    case(
        "ppo-image48-level5",
        "ppo",
        "--env image:48x48x3,level=5,actions=box3 --policy CnnPolicy --n-envs 8 --n-steps 128 "
        "--batch-size 512 --n-epochs 2 --timesteps 4096",
        "ppo cnn image box env-state",
    ),
    case(
        "ppo-image96-mlp-large",
        "ppo",
        "--env image:96x96x3 --n-envs 16 --n-steps 512 --batch-size 512 --n-epochs 1 "
        "--timesteps 24576",
        "ppo mlp image large-rollout",
    ),
    case(
        "ppo-dict",
        "ppo",
        "--env dict:48x48x3+16 --policy MultiInputPolicy --n-envs 4 --n-steps 256 "
        "--batch-size 256 --n-epochs 2 --timesteps 4096",
        "ppo multiinput dict",
    ),
    case(
        "ppo-dict-large",
        "ppo",
        "--env dict:64x64x3+256,actions=box4 --policy MultiInputPolicy --n-envs 16 "
        "--n-steps 64 --batch-size 512 --n-epochs 1 --timesteps 4096",
        "ppo multiinput dict box dummy16",
    ),
]

A2C = [
    case("a2c-cartpole", "a2c", "--timesteps 20000", "a2c mlp rmsprop dummy8"),
    case(
        "a2c-adam",
        "a2c",
        "--env vector:128,actions=box4 --n-envs 16 --n-steps 16 --adam --timesteps 40000",
        "a2c mlp adam box",
    ),
    case(
        "a2c-image36",
        "a2c",
        "--env image:36x36x3 --policy CnnPolicy --n-envs 16 --n-steps 16 --timesteps 8192",
        "a2c cnn image rmsprop",
    ),
    case(
        "a2c-dict",
        "a2c",
        "--env dict:36x36x3+32 --policy MultiInputPolicy --n-envs 8 --n-steps 32 --timesteps 6144",
        "a2c multiinput dict rmsprop",
    ),
    case(
        "a2c-long-rollout",
        "a2c",
        "--env vector:512 --n-envs 16 --n-steps 1024 --net-arch 256 256 --timesteps 65536",
        "a2c mlp rmsprop large-rollout",
    ),
    case(
        "a2c-sde",
        "a2c",
        "--env Pendulum-v1 --n-envs 4 --n-steps 8 --use-sde --timesteps 8000",
        "a2c mlp sde box",
        small=True,
    ),
    case(
        "a2c-net1024",
        "a2c",
        "--env vector:64 --n-envs 8 --n-steps 32 --net-arch 1024 1024 --timesteps 10240",
        "a2c mlp large-net rmsprop",
    ),
]
