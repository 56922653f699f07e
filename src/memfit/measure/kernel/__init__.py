"""What the kernel says about processes: /proc, control groups, limits."""
