"""PPO with an LSTM: minibatches are whole sequences of some envs, with their first states."""

import argparse

import gymnasium as gym
import numpy as np
import torch
from torch import nn, optim
from torch.distributions import Categorical

State = tuple[torch.Tensor, torch.Tensor]


class Agent(nn.Module):
    """An LSTM between an encoder and two heads."""

    def __init__(self, inputs: int, actions: int, lstm_size: int) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(inputs, 128), nn.ReLU())
        self.lstm = nn.LSTM(128, lstm_size)
        self.actor = nn.Linear(lstm_size, actions)
        self.critic = nn.Linear(lstm_size, 1)

    def states(
        self, x: torch.Tensor, state: State, done: torch.Tensor
    ) -> tuple[torch.Tensor, State]:
        """Go through a sequence; where an episode ended, the state begins anew."""
        envs = state[0].shape[1]
        hidden = self.encoder(x).reshape(-1, envs, 128)
        outputs = []
        for h, d in zip(hidden, done.reshape(-1, envs), strict=True):
            keep = (1.0 - d).view(1, -1, 1)
            output, state = self.lstm(h.unsqueeze(0), (keep * state[0], keep * state[1]))
            outputs.append(output)
        return torch.cat(outputs).flatten(0, 1), state


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--env-id", default="Acrobot-v1")
    parser.add_argument("--num-envs", type=int, default=16)
    parser.add_argument("--num-steps", type=int, default=96)
    parser.add_argument("--num-minibatches", type=int, default=4)
    parser.add_argument("--lstm-size", type=int, default=256)
    parser.add_argument("--iterations", type=int, default=4)
    args = parser.parse_args()

    envs = gym.vector.SyncVectorEnv([lambda: gym.make(args.env_id)] * args.num_envs)
    inputs = int(np.prod(envs.single_observation_space.shape or ()))
    assert isinstance(envs.single_action_space, gym.spaces.Discrete)
    agent = Agent(inputs, int(envs.single_action_space.n), args.lstm_size)
    optimizer = optim.Adam(agent.parameters(), lr=2.5e-4)
    obs = torch.zeros((args.num_steps, args.num_envs, inputs))
    actions = torch.zeros((args.num_steps, args.num_envs))
    logprobs = torch.zeros((args.num_steps, args.num_envs))
    rewards = torch.zeros((args.num_steps, args.num_envs))
    dones = torch.zeros((args.num_steps, args.num_envs))
    values = torch.zeros((args.num_steps, args.num_envs))
    next_obs = torch.Tensor(envs.reset(seed=1)[0])
    next_done = torch.zeros(args.num_envs)
    lstm_state = (
        torch.zeros(1, args.num_envs, args.lstm_size),
        torch.zeros(1, args.num_envs, args.lstm_size),
    )
    per_minibatch = args.num_envs // args.num_minibatches
    for iteration in range(args.iterations):
        initial = (lstm_state[0].clone(), lstm_state[1].clone())
        for step in range(args.num_steps):
            obs[step], dones[step] = next_obs, next_done
            with torch.no_grad():
                hidden, lstm_state = agent.states(next_obs, lstm_state, next_done)
                policy = Categorical(logits=agent.actor(hidden))
                action = policy.sample()
                values[step] = agent.critic(hidden).flatten()
            actions[step], logprobs[step] = action, policy.log_prob(action)
            seen, reward, terminated, truncated, infos = envs.step(action.numpy())
            rewards[step], next_obs = torch.tensor(reward), torch.Tensor(seen)
            next_done = torch.Tensor(terminated | truncated)
        returns, future = torch.zeros_like(rewards), values[-1]
        for t in reversed(range(args.num_steps)):
            future = rewards[t] + 0.99 * future * (1.0 - dones[t])
            returns[t] = future
        advantages = returns - values
        order = np.random.permutation(args.num_envs)
        for start in range(0, args.num_envs, per_minibatch):
            chosen = order[start : start + per_minibatch]
            state = (initial[0][:, chosen], initial[1][:, chosen])
            hidden, _ = agent.states(obs[:, chosen], state, dones[:, chosen])
            policy = Categorical(logits=agent.actor(hidden))
            old = logprobs[:, chosen].flatten()
            ratio = (policy.log_prob(actions[:, chosen].flatten()) - old).exp()
            advantage = advantages[:, chosen].flatten()
            pg_loss = -torch.min(advantage * ratio, advantage * ratio.clamp(0.8, 1.2)).mean()
            error = agent.critic(hidden).flatten() - returns[:, chosen].flatten()
            optimizer.zero_grad()
            (pg_loss + 0.5 * error.pow(2).mean()).backward()
            optimizer.step()
        print(f"iteration {iteration}: {rewards.mean():.3f}")
    envs.close()
