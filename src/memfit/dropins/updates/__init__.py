"""The gradient of a large batch from small ones."""
