"""Programs with known memory, to be explained while they run. Each prints `ready` and waits."""
