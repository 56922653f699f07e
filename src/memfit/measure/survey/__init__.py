"""Measurements of a run that is about to learn: small updates, replays, rehearsals."""
