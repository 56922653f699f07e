"""Checks of what envs make and keep."""
