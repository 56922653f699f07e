"""The game as a Gymnasium env: frames, six actions, and reward by health.

This file and what it imports stay free of torch: workers load nothing else.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from numpy.typing import NDArray

from memfit.systems.fighter.cartridge import read_addresses, read_cartridge, read_state
from memfit.systems.fighter.console import Console
from memfit.systems.fighter.settings import ACTIONS, FRAMES, Game

Frame = NDArray[np.uint8]


class FighterEnv(gymnasium.Env[Frame, np.int64]):
    """One fight after another against the console's own fighter.

    The reward of a step is what the opponent lost of his health less what the player lost of his,
    where a full bar is 1. An episode ends with a match, or is cut off after its steps.
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012

    def __init__(self, game: Game | None = None, render_mode: str | None = None) -> None:
        self.game = game or Game()
        self.render_mode = render_mode
        self.addresses = read_addresses(self.game.rom, self.game.addresses)
        self.console = Console(read_cartridge(self.game.rom))
        self._beginning = read_state(self.game.state) or self._switch_on()
        self.console.load(self._beginning)  # a savestate that does not fit is refused here
        self._steps = 0
        self._health = (0, 0)
        self.observation_space = spaces.Box(0, 255, FRAMES[self.game.frames], np.uint8)
        self.action_space = spaces.Discrete(len(ACTIONS))

    def _switch_on(self) -> bytes:
        """The savestate that episodes begin with: the console is on and the fight begins."""
        console, addresses = self.console, self.addresses
        console.run(max(1, addresses.start_frames))
        if addresses.start_button:
            console.hold(addresses.start_button)
            console.run(3)
            console.hold(None)
        console.run(addresses.then_frames)
        return console.save()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Frame, dict[str, Any]]:
        """A new match; a seed makes its chances those of the seed."""
        super().reset(seed=seed, options=options)
        self.console.load(self._beginning)
        for address in self.addresses.random:
            self.console[address] = int(self.np_random.integers(1, 256))
        self.console.run(1)
        self._steps = 0
        self._health = self._read_health()
        return self._frame(), self._info()

    def step(self, action: np.int64 | int) -> tuple[Frame, float, bool, bool, dict[str, Any]]:
        """Hold a button for some frames."""
        self.console.hold(ACTIONS[int(action)])
        self.console.run(self.game.frame_skip)
        self._steps += 1
        return (
            self._frame(),
            self._reward(),
            self._is_over(),
            self._steps >= self.game.episode_steps,
            self._info(),
        )

    def render(self) -> Frame | None:
        """The screen as it is, in colour."""
        return self.console.screen().copy() if self.render_mode == "rgb_array" else None

    def close(self) -> None:
        """Switch the console off."""
        self.console.close()

    def _frame(self) -> Frame:
        screen: NDArray[Any] = self.console.screen()
        if self.game.frames == "colour":
            return screen.copy()
        grey = screen.astype(np.uint16).sum(2) // 3
        if self.game.frames == "half":
            rows, columns = grey.shape
            grey = grey.reshape(rows // 2, 2, columns // 2, 2).sum((1, 3)) // 4
        return np.asarray(grey[:, :, np.newaxis], np.uint8)

    def _read_health(self) -> tuple[int, int]:
        reward = self.addresses.reward
        if reward is None:
            return 0, 0
        return self.console[reward.health], self.console[reward.opponent_health]

    def _reward(self) -> float:
        """Losses only: a new round fills both bars, which is no one's merit."""
        if self.addresses.reward is None:
            return 0.0
        before, self._health = self._health, self._read_health()
        lost, dealt = (max(0, b - now) for b, now in zip(before, self._health, strict=True))
        return (dealt - lost) / self.addresses.reward.full_health

    def _is_over(self) -> bool:
        state = self.addresses.state
        if state is None or self.game.to_the_end:
            return False
        return self.console[state] in self.addresses.over

    def _info(self) -> dict[str, Any]:
        return {"health": self._health[0], "opponent_health": self._health[1]}
