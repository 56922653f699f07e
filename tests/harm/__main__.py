"""Play one fault in this process: `python -m tests.harm NAME SECONDS [KIND]`, result as JSON."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

from tests.harm.scene import play
from tests.harm.table import FAULTS

if __name__ == "__main__":
    name, seconds, *kind = sys.argv[1:]
    fault = replace(FAULTS[name], kind=kind[0]) if kind else FAULTS[name]
    sys.stdout.write(json.dumps(play(fault, held=float(seconds))) + "\n")
