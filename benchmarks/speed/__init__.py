"""What the drop-ins save, and how fast they are, side by side with what they replace."""
