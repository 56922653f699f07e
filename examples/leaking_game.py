"""The same game with a leak: every picture is kept, and nobody ever reads them."""

from my_game import MyGame


class LeakingGame(MyGame):
    """Keeps each picture that it has shown."""

    def __init__(self) -> None:
        super().__init__()
        self.history = []

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.history.append(observation.copy())
        return observation, reward, terminated, truncated, info


def make_env() -> LeakingGame:
    """What `memfit profile leaking_game:make_env` calls."""
    return LeakingGame()
