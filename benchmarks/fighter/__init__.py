"""What the fighter system takes, as described and made to fit, and whether it learns."""
