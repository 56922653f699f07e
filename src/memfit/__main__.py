"""`python -m memfit` is `memfit`."""

import sys

from memfit.cli import main

if __name__ == "__main__":
    sys.exit(main())
