"""TorchRL: DQN with a lazily made tensor storage and a soft target."""

import argparse

import torch
from tensordict.nn import TensorDictModule, TensorDictSequential
from torchrl.collectors import Collector
from torchrl.data import LazyTensorStorage, TensorDictReplayBuffer
from torchrl.envs import GymEnv, StepCounter, TransformedEnv
from torchrl.modules import MLP, EGreedyModule, QValueModule
from torchrl.objectives import DQNLoss, SoftUpdate

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--buffer-size", type=int, default=1_000_000)
parser.add_argument("--batch-size", type=int, default=2_048)
parser.add_argument("--frames-per-batch", type=int, default=200)
parser.add_argument("--total-frames", type=int, default=2_000)
parser.add_argument("--init-random-frames", type=int, default=400)
parser.add_argument("--cells", type=int, default=512)

if __name__ == "__main__":
    args = parser.parse_args()
    env = TransformedEnv(GymEnv("CartPole-v1"), StepCounter())
    torch.manual_seed(0)
    network = MLP(in_features=4, out_features=2, num_cells=[args.cells, args.cells])
    value = TensorDictModule(network, in_keys=["observation"], out_keys=["action_value"])
    policy = TensorDictSequential(value, QValueModule(spec=env.action_spec))
    explore = EGreedyModule(env.action_spec, annealing_num_steps=10_000, eps_init=0.5)
    acting = TensorDictSequential(policy, explore)
    collector = Collector(
        env,
        acting,
        frames_per_batch=args.frames_per_batch,
        total_frames=args.total_frames,
        init_random_frames=args.init_random_frames,
    )
    rb = TensorDictReplayBuffer(
        storage=LazyTensorStorage(args.buffer_size), batch_size=args.batch_size
    )
    loss = DQNLoss(value_network=policy, action_space=env.action_spec, delay_value=True)
    optim = torch.optim.Adam(loss.parameters(), lr=1e-3)
    updater = SoftUpdate(loss, eps=0.99)
    frames = 0
    for data in collector:
        rb.extend(data.reshape(-1))
        frames += data.numel()
        if frames < args.init_random_frames:
            continue
        for _ in range(5):
            out = loss(rb.sample())
            out["loss"].backward()
            optim.step()
            optim.zero_grad()
            explore.step(data.numel())
            updater.step()
        print(f"{frames} frames: loss {out['loss'].item():.4f}")
    collector.shutdown()
