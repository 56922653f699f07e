"""Benchmarks of memfit, run from the root of the repository."""
