"""Harm that memfit does to a training when things go wrong around it, counted."""
