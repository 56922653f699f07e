"""Drones fly where they are told, and their sensors read whole numbers of 16 bits."""

from __future__ import annotations

import torch
from gymnasium.utils.env_checker import check_env

from memfit.systems.drone.flight import Flight
from memfit.systems.drone.gym_env import DroneEnv, DroneVectorEnv
from memfit.systems.drone.settings import CHANNELS, EPISODE, SAMPLES


def fly(flight: Flight, action: list[float], steps: int) -> tuple[torch.Tensor, torch.Tensor]:
    raw = torch.zeros(flight.agents, steps, SAMPLES, CHANNELS, dtype=torch.int16)
    total = torch.zeros(flight.agents)
    rewards = torch.zeros(flight.agents)
    for step in range(steps):
        flight.advance(torch.tensor([action]).expand(flight.agents, 4), raw[:, step], rewards)
        total += rewards
    return raw, total


def test_a_drone_goes_where_it_is_pushed() -> None:
    flight = Flight(8, seed=0, device="cpu")
    flight.reset()
    fly(flight, [1.0, 0.0, 0.0, 0.0], 10)
    assert (flight.position[:, 0] > 1.0).all()
    assert (flight.position[:, 1:].abs() < 1e-3).all()


def test_a_resting_sensor_feels_gravity_its_bias_and_noise() -> None:
    flight = Flight(500, seed=0, device="cpu")
    flight.reset()
    raw, _ = fly(flight, [0.0, 0.0, 0.0, 0.0], 5)
    felt = raw.float().flatten(1, 2) * flight.bits
    assert abs(float(felt[..., 2].mean()) - 9.81) < 0.05
    assert 0.05 < float(felt[..., 0].mean(1).std()) < 0.15  # each sensor has a bias of its own
    assert 0.015 < float(felt[0, :, 0].std()) < 0.025


def test_the_reward_is_the_way_made() -> None:
    flight = Flight(16, seed=1, device="cpu")
    flight.reset()
    before = torch.linalg.vector_norm(flight.goal - flight.position, dim=1)
    _, total = fly(flight, [0.3, -0.2, 0.1, 0.5], 20)
    after = torch.linalg.vector_norm(flight.goal - flight.position, dim=1)
    torch.testing.assert_close(total, before - after, atol=1e-3, rtol=0)


def test_one_seed_is_one_flight() -> None:
    flights = [Flight(4, seed=7, device="cpu") for _ in range(2)]
    for flight in flights:
        flight.reset()
    first, second = (fly(flight, [0.5, 0.5, 0.0, 0.1], 5)[0] for flight in flights)
    assert torch.equal(first, second)


def test_one_drone_passes_the_env_checker() -> None:
    check_env(DroneEnv(), skip_render_check=True)


def test_a_vector_of_drones_keeps_its_promises() -> None:
    env = DroneVectorEnv(5, history=50)
    observations, _ = env.reset(seed=1)
    assert env.observation_space.contains(observations)
    env.action_space.seed(0)
    for step in range(1, EPISODE + 2):
        observations, rewards, terminated, truncated, _ = env.step(env.action_space.sample())
        assert env.observation_space.contains(observations)
        assert rewards.shape == terminated.shape == truncated.shape == (5,)
        assert not terminated.any()
        assert truncated.all() == (step == EPISODE)
    again, _ = env.reset(seed=1)
    once, _ = DroneVectorEnv(5, history=50).reset(seed=1)
    assert (again == once).all()
