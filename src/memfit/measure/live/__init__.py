"""A running process tree, read from outside and asked from inside."""
