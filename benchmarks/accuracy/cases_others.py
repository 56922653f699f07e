"""Cases of sb3-contrib, processes, wrappers, callbacks and scripts of all kinds."""

from __future__ import annotations

from benchmarks.accuracy.case import case

CONTRIB = [
    case(
        "recurrent-cartpole",
        "recurrent",
        "--n-steps 64 --batch-size 128 --n-epochs 2 --timesteps 1024",
        "recurrentppo mlplstm",
        small=True,
    ),
    case(
        "recurrent-lstm512",
        "recurrent",
        "--env vector:64,actions=box4 --n-envs 8 --batch-size 256 --n-epochs 1 "
        "--lstm-size 512 --timesteps 3072",
        "recurrentppo mlplstm",
    ),
    case(
        "recurrent-image36",
        "recurrent",
        "--env image:36x36x3,length=60 --policy CnnLstmPolicy --batch-size 256 --n-epochs 1 "
        "--timesteps 2048",
        "recurrentppo cnnlstm image",
    ),
    case(
        "recurrent-dict",
        "recurrent",
        "--env dict:36x36x3+16 --policy MultiInputLstmPolicy --lstm-size 128 --n-epochs 1 "
        "--timesteps 2048",
        "recurrentppo multiinputlstm dict",
    ),
    case("maskable-vector", "maskable", "--timesteps 8192", "maskableppo mlp"),
    case(
        "maskable-multidiscrete",
        "maskable",
        "--env vector:256,actions=multidiscrete12 --n-envs 8 --batch-size 1024 --timesteps 12288",
        "maskableppo mlp multidiscrete",
    ),
    case(
        "maskable-image36",
        "maskable",
        "--env image:36x36x3,actions=discrete128 --policy CnnPolicy --n-steps 256 "
        "--n-epochs 2 --timesteps 3072",
        "maskableppo cnn image",
    ),
    case("trpo-pendulum", "trpo", "--timesteps 8192", "trpo mlp box"),
    case(
        "trpo-vector512",
        "trpo",
        "--env vector:512 --n-envs 8 --n-steps 1024 --batch-size 1024 --timesteps 24576",
        "trpo mlp",
    ),
    case(
        "trpo-image36",
        "trpo",
        "--env image:36x36x3 --policy CnnPolicy --n-envs 4 --n-steps 256 --sub-sampling 4 "
        "--timesteps 3072",
        "trpo cnn image",
    ),
]

PROCESSES = [
    case(
        "subproc-fork-4",
        "subproc",
        "--start-method fork --timesteps 8192",
        "ppo mlp subproc-fork",
        small=True,
    ),
    case(
        "subproc-fork-image",
        "subproc",
        "--env image:48x48x3 --policy CnnPolicy --start-method fork --n-envs 3 --n-steps 256 "
        "--timesteps 2304",
        "ppo cnn image subproc-fork",
    ),
    case(
        "subproc-fork-level",
        "subproc",
        "--env vector:64,level=20 --start-method fork --n-envs 4 --timesteps 8192",
        "ppo mlp subproc-fork env-state",
    ),
    case(
        "subproc-forkserver-2",
        "subproc",
        "--start-method forkserver --n-envs 2 --timesteps 6144",
        "ppo mlp subproc-forkserver",
    ),
    case(
        "subproc-forkserver-level",
        "subproc",
        "--env vector:512,level=5 --start-method forkserver --n-envs 4 --timesteps 8192",
        "ppo mlp subproc-forkserver env-state",
    ),
    case(
        "subproc-spawn-2",
        "subproc",
        "--start-method spawn --n-envs 2 --timesteps 6144",
        "ppo mlp subproc-spawn",
    ),
    case(
        "subproc-spawn-dict",
        "subproc",
        "--env dict:36x36x3+16 --policy MultiInputPolicy --start-method spawn --n-envs 3 "
        "--n-steps 256 --timesteps 2304",
        "ppo multiinput dict subproc-spawn",
    ),
    case(
        "subproc-sac-default",
        "subproc",
        "--algo sac --env vector:64,actions=box4 --n-envs 2 --timesteps 2000",
        "sac mlp subproc-forkserver",
    ),
]

WRAPPED = [
    case(
        "wrapped-monitor",
        "wrapped",
        "--wrap monitor --timesteps 8192",
        "ppo mlp vecmonitor monitor",
        small=True,
    ),
    case(
        "wrapped-normalize",
        "wrapped",
        "--env vector:256,actions=box4 --n-envs 8 --wrap monitor normalize --n-steps 1024 "
        "--batch-size 512 --timesteps 24576",
        "ppo mlp vecnormalize vecmonitor",
    ),
    case(
        "wrapped-stack-image",
        "wrapped",
        "--env image:48x48x1 --policy CnnPolicy --wrap stack --n-envs 8 --n-steps 128 "
        "--timesteps 3072",
        "ppo cnn image vecframestack",
    ),
    case(
        "wrapped-stack-transpose",
        "wrapped",
        "--env image:64x64x1 --policy CnnPolicy --wrap stack transpose monitor --n-envs 4 "
        "--n-steps 128 --batch-size 128 --timesteps 1536",
        "ppo cnn image vecframestack vectransposeimage vecmonitor",
    ),
    case(
        "wrapped-dqn-stack",
        "wrapped",
        "--algo dqn --env image:48x48x1 --policy CnnPolicy --wrap stack --n-envs 1 "
        "--buffer-size 20000 --learning-starts 19000 --batch-size 32 --timesteps 20600",
        "dqn cnn image vecframestack replay-full",
    ),
    case(
        "wrapped-td3-normalize",
        "wrapped",
        "--algo td3 --env vector:512,actions=box4 --wrap normalize --n-envs 4 "
        "--buffer-size 40000 --learning-starts 36000 --timesteps 40000",
        "td3 mlp vecnormalize replay-full",
    ),
    case(
        "wrapped-stack-vector",
        "wrapped",
        "--env vector:512 --wrap stack normalize --frames 8 --n-envs 8 --n-steps 512 "
        "--timesteps 12288",
        "ppo mlp vecframestack vecnormalize",
    ),
]

SCRIPTED = [
    case(
        "callbacks-eval",
        "callbacks",
        "--eval-freq 1000 --timesteps 6144",
        "ppo mlp eval callbacklist",
    ),
    case(
        "callbacks-eval-level",
        "callbacks",
        "--env vector:64,level=5 --n-envs 4 --eval-freq 500 --eval-envs 8 --timesteps 8192",
        "ppo mlp eval env-state",
    ),
    case(
        "callbacks-checkpoint-replay",
        "callbacks",
        "--algo dqn --env vector:1024 --buffer-size 20000 --save-freq 5000 "
        "--save-replay-buffer --learning-starts 8000 --timesteps 20000",
        "dqn mlp checkpoint-replay",
    ),
    case(
        "callbacks-eval-checkpoint",
        "callbacks",
        "--algo sac --env vector:128,actions=box4 --n-envs 1 --eval-freq 800 --save-freq 500 "
        "--save-replay-buffer --buffer-size 50000 --timesteps 3000",
        "sac mlp eval checkpoint-replay callbacklist",
    ),
    case(
        "callbacks-eval-image",
        "callbacks",
        "--algo dqn --env image:48x48x3,length=60 --policy CnnPolicy --n-envs 1 --eval-freq 1000 "
        "--buffer-size 8000 --learning-starts 4000 --timesteps 5000",
        "dqn cnn image eval",
    ),
    case(
        "callbacks-checkpoint-ppo",
        "callbacks",
        "--env vector:64,actions=box4 --n-envs 4 --save-freq 500 --timesteps 8192",
        "ppo mlp checkpoint",
    ),
    case(
        "extractor-residual",
        "extractor",
        "--env image:36x36x3 --timesteps 2048",
        "ppo cnn image custom-extractor",
    ),
    case(
        "extractor-residual-batch512",
        "extractor",
        "--env image:64x64x3 --n-envs 8 --n-steps 64 --batch-size 512 --timesteps 1536",
        "ppo cnn image custom-extractor",
    ),
    case(
        "extractor-attention",
        "extractor",
        "--extractor attention --env vector:24 --policy MlpPolicy --timesteps 2048",
        "ppo mlp custom-extractor",
    ),
    case(
        "extractor-sac-residual",
        "extractor",
        "--algo sac --env image:36x36x3,actions=box3 --n-envs 2 --batch-size 64 --timesteps 900",
        "sac cnn image custom-extractor",
    ),
    case("her-sac", "her", "--timesteps 1300", "sac multiinput her dict", small=True),
    case(
        "her-ddpg-4",
        "her",
        "--algo ddpg --n-envs 4 --env goal:200,actions=box4,length=50 --buffer-size 50000 "
        "--timesteps 4000",
        "ddpg multiinput her dict",
    ),
    case(
        "her-tqc-1024",
        "her",
        "--algo tqc --env goal:64,actions=box4,length=50 --batch-size 1024 --sampled-goals 8 "
        "--timesteps 1250",
        "tqc multiinput her dict",
    ),
    case("dataset-ppo", "dataset", "--timesteps 8192", "ppo mlp own-data"),
    case(
        "dataset-sac-500",
        "dataset",
        "--algo sac --megabytes 500 --timesteps 1500",
        "sac mlp own-data",
    ),
    case("two-models-ppo", "two_models", "--timesteps 8192", "ppo a2c mlp second-model"),
    case(
        "two-models-dqn",
        "two_models",
        "--second dqn --env vector:256 --net-arch 1024 1024 --timesteps 8000",
        "dqn a2c mlp second-model large-net",
    ),
]
