"""The drone system: vectorised navigation by an inertial sensor, PPO with an autoencoder.

Two trainings of the same task with the same networks and the same losses: `described` keeps
memory the way two hand-made assessments describe it, `fitted` the way that makes it fit.
Run it as `python -m memfit.systems.drone`.
"""
