"""How drones fly and what their sensors read: all of them at once, in blocks.

The autopilot follows a commanded acceleration and a commanded turn with a lag; the drone tilts
into the direction in which it accelerates. The sensor is fixed to its body: it feels gravity, the
thrust and the drag of the air, adds a bias of its own and noise, and is read out with 16 bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor

from memfit.systems.drone.settings import CHANNELS, SAMPLES, SENSOR_HZ

GRAVITY = 9.81
MOST_ACCELERATION = 4.0  # m/s² at full command
MOST_TURN = 1.0  # rad/s at full command
LAG = 0.15  # s, of the autopilot
DRAG = 0.3  # 1/s
FARTHEST = 8.0  # m, along each axis, from the start to the target

# A small consumer sensor: ±4 g and ±500 °/s over 16 bits; noise densities and biases as usual.
ACCELERATION_BIT = 4 * GRAVITY / 2**15
ROTATION_BIT = math.radians(500) / 2**15
ACCELERATION_NOISE, ACCELERATION_BIAS = 0.02, 0.10  # m/s²
ROTATION_NOISE, ROTATION_BIAS = 0.002, 0.01  # rad/s

# So many drones are moved at once: temporaries stay small however many there are.
BLOCK = 16_384


def blocks(agents: int, size: int) -> Iterator[slice]:
    """Neighbouring agents, so many at a time."""
    for first in range(0, agents, size):
        yield slice(first, min(first + size, agents))


class Flight:
    """The state of all drones. About twenty numbers each."""

    def __init__(self, agents: int, *, seed: int, device: str) -> None:
        self.agents = agents
        self.device = torch.device(device)
        self.random = torch.Generator(self.device).manual_seed(seed)
        self.position = self._zeros(3)
        self.velocity = self._zeros(3)
        self.acceleration = self._zeros(3)
        self.tilt = self._zeros(2)
        self.heading = self._zeros(1)
        self.turn = self._zeros(1)
        self.bias = self._zeros(CHANNELS)
        self.goal = self._zeros(3)
        bits = [ACCELERATION_BIT] * 3 + [ROTATION_BIT] * 3
        noise = [ACCELERATION_NOISE] * 3 + [ROTATION_NOISE] * 3
        self.bits = torch.tensor(bits, device=self.device)
        self.noise = torch.tensor(noise, device=self.device)
        # What a network takes: accelerations in g, rotations in rad/s.
        self.scale = self.bits / torch.tensor([GRAVITY] * 3 + [1.0] * 3, device=self.device)
        after = torch.arange(1, SAMPLES + 1, device=self.device) / SENSOR_HZ
        self.faded = torch.exp(-after / LAG)[None, :, None]

    def _zeros(self, width: int) -> Tensor:
        return torch.zeros(self.agents, width, device=self.device)

    def reset(self) -> None:
        """Every drone at its start, with a sensor and a target of its own."""
        for state in (self.position, self.velocity, self.acceleration, self.tilt, self.turn):
            state.zero_()
        self.heading.uniform_(-math.pi, math.pi, generator=self.random)
        self.goal.uniform_(-FARTHEST, FARTHEST, generator=self.random)
        self.bias[:, :3].normal_(0, ACCELERATION_BIAS, generator=self.random)
        self.bias[:, 3:].normal_(0, ROTATION_BIAS, generator=self.random)

    def targets(self, out: Tensor) -> None:
        """Write what the drones are told: the way to the target, and how far it is."""
        torch.sub(self.goal, self.position, out=out[:, :3])
        torch.linalg.vector_norm(out[:, :3], dim=1, out=out[:, 3])
        out /= FARTHEST

    def advance(self, actions: Tensor, samples: Tensor, rewards: Tensor, every: int = 1) -> None:
        """Fly one control step; the sensor's readings and how much nearer the target came."""
        for block in blocks(self.agents, BLOCK):
            self._advance(block, actions[block], samples[block], rewards[block], every)

    def _advance(
        self, block: slice, actions: Tensor, samples: Tensor, rewards: Tensor, every: int
    ) -> None:
        command = actions.clamp(-1, 1)
        position, velocity = self.position[block], self.velocity[block]
        before = torch.linalg.vector_norm(self.goal[block] - position, dim=1)

        # The autopilot reaches what it is told along an exponential: no loop over the samples.
        asked = (command[:, :3] * MOST_ACCELERATION)[:, None]
        pushes = asked + (self.acceleration[block][:, None] - asked) * self.faded
        asked_turn = (command[:, 3:] * MOST_TURN)[:, None]
        turns = asked_turn + (self.turn[block][:, None] - asked_turn) * self.faded
        drag = velocity[:, None] * -DRAG
        speeds = velocity[:, None] + (pushes + drag).cumsum(1) / SENSOR_HZ
        headings = self.heading[block][:, None] + turns.cumsum(1) / SENSOR_HZ

        readings = self._feel(block, pushes + drag, turns, headings)
        self._keep(readings[:, every - 1 :: every], samples)

        position += speeds.sum(1) / SENSOR_HZ
        velocity.copy_(speeds[:, -1])
        self.acceleration[block] = pushes[:, -1]
        self.turn[block] = turns[:, -1]
        self.heading[block] = headings[:, -1]
        rewards.copy_(before - torch.linalg.vector_norm(self.goal[block] - position, dim=1))

    def _keep(self, readings: Tensor, samples: Tensor) -> None:
        """Whole numbers are stored as they are read, others as a network takes them."""
        samples.copy_(readings * self.scale if samples.is_floating_point() else readings)

    def _feel(self, block: slice, moved: Tensor, turns: Tensor, headings: Tensor) -> Tensor:
        """What the sensor reads while the drone moves so: whole numbers within 16 bits."""
        cos, sin = headings.cos(), headings.sin()
        ahead = moved[..., 0:1] * cos + moved[..., 1:2] * sin
        aside = moved[..., 1:2] * cos - moved[..., 0:1] * sin
        up = moved[..., 2:3] + GRAVITY
        tilts = torch.cat([ahead, aside], dim=-1).div_(GRAVITY).atan_()
        previous = torch.cat([self.tilt[block][:, None], tilts[:, :-1]], dim=1)
        self.tilt[block] = tilts[:, -1]
        rates = (tilts - previous) * SENSOR_HZ
        # Tilted into its acceleration, the body feels most of it along its own axis.
        thrust = (ahead.square() + aside.square() + up.square()).sqrt_()
        felt = torch.cat([ahead * 0.1, aside * 0.1, thrust, rates, turns], dim=-1)
        felt += self.bias[block][:, None]
        noise = torch.empty_like(felt).normal_(generator=self.random)
        felt += noise.mul_(self.noise)
        return felt.div_(self.bits).round_().clamp_(-(2**15), 2**15 - 1)
