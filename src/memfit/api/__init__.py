"""The verbs of memfit, a file each. The only place, beside the child, that wires rooms together."""
