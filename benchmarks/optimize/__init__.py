"""Fixes made by `memfit optimize`: predicted against measured savings, and identical trainings."""
