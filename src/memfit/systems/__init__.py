"""Training systems that run by themselves and on which everything is shown."""
