"""The emulated console: it runs frames, holds a button down, and shows its screen and memory."""

from __future__ import annotations

import io
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memfit.errors import UsageError

with warnings.catch_warnings():
    # The emulator loads a library for windows, which we do not use, and that announces itself.
    warnings.filterwarnings("ignore", message="Using SDL2 binaries")
    from pyboy import PyBoy  # type: ignore[import-untyped]
    from pyboy.utils import PyBoyException  # type: ignore[import-untyped]


class Console:
    """One console with a cartridge in it. It writes no files."""

    def __init__(self, cartridge: bytes) -> None:
        self._held: str | None = None
        try:
            # From memory, so that it neither looks for files beside the cartridge nor makes any.
            self._machine: Any = PyBoy(
                io.BytesIO(cartridge),
                window="null",
                sound_emulated=False,
                log_level="CRITICAL",
            )
        except PyBoyException as error:
            raise UsageError(f"the emulator refuses this ROM: {error}. Give another file") from None
        self._machine.set_emulation_speed(0)

    def hold(self, button: str | None) -> None:
        """Keep this button down from now on, and no other."""
        if self._held == button:
            return
        if self._held:
            self._machine.button_release(self._held)
        if button:
            self._machine.button_press(button)
        self._held = button

    def run(self, frames: int) -> None:
        """Run so many frames; the screen is that of the last one."""
        if frames:
            self._machine.tick(frames, True)

    def screen(self) -> NDArray[np.uint8]:
        """Red, green and blue of every pixel, as a view that the next frame changes."""
        pixels: NDArray[np.uint8] = self._machine.screen.ndarray
        return pixels[:, :, :3]

    def __getitem__(self, address: int) -> int:
        return int(self._machine.memory[address])

    def __setitem__(self, address: int, value: int) -> None:
        self._machine.memory[address] = value

    def save(self) -> bytes:
        """Everything that the console is, as bytes."""
        state = io.BytesIO()
        self._machine.save_state(state)
        return state.getvalue()

    def load(self, state: bytes) -> None:
        """Be as it was when this was saved."""
        self.hold(None)
        try:
            self._machine.load_state(io.BytesIO(state))
        except Exception as error:  # noqa: BLE001 - it raises whatever its parser meets
            raise UsageError(
                f"the savestate does not fit this ROM and emulator ({error}): make it anew"
            ) from None

    def close(self) -> None:
        """Switch it off."""
        self._machine.stop(save=False)
