"""The fighter system: a fighting game of our own on a Game Boy emulator, learned by PPO.

Two trainings of the same game by the same algorithm: `described` keeps memory the way that a
hand-made assessment describes it, `fitted` the way that makes it fit.
Run it as `python -m memfit.systems.fighter`.
"""
