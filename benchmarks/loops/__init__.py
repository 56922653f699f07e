"""Benchmark of plans of any training loop: predicted against measured peaks."""
