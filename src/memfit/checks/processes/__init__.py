"""Checks of workers, threads and limits."""
