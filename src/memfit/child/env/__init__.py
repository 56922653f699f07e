"""The child that steps an environment, and waits where it is read."""
