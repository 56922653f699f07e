"""Read-only data of which there is one copy for all processes."""
