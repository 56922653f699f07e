"""What an environment of the ninja system costs, both ways of keeping memory, and its learning."""
