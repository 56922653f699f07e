"""The trader system: a portfolio of 7 coins, PPO in ElegantRL's style, tuned by Optuna.

Two ways to train the same networks on the same market: `described` keeps memory the way a hand-made
assessment describes it, `fitted` the way that makes it fit, and `study` runs as many fitted trials
side by side as its limit allows. Run it as `python -m memfit.systems.trader`.
"""
