"""The trader system: what it takes as described and made to fit, and whether it learns."""
