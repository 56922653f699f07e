"""`make docs`: build the site, with warnings as errors, and say where it is."""

from __future__ import annotations

import sys
from pathlib import Path

from docs.builder.site import build

if __name__ == "__main__":
    into = Path(sys.argv[1] if len(sys.argv) > 1 else "build/site")
    failed = build(into)
    if not failed:
        print(f"to read it: {sys.executable} -m http.server -b 127.0.0.1 -d {into}")
    sys.exit(failed)
