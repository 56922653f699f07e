"""The ninja system: a two-dimensional platformer with pixels, states and graphs, learned by PPO.

One environment whose memory is kept as a hand-made assessment describes it, or made to fit: each
change is a switch of its own (`Memory`), and the observations stay the same.
Run it as `python -m memfit.systems.ninja`.
"""
