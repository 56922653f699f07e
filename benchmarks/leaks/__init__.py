"""A corpus of small environments, half of which leak: how often each tool tells."""
