"""A training as a package that is started by ``python -m pixelrl``."""
