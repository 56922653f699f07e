"""All faults, by name, and how they are played."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from tests.harm import around, disk, targets
from tests.harm.scene import SECONDS, Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault for fault in (*disk.FAULTS, *around.FAULTS, *targets.FAULTS)
}


def played(name: str, *kind: str, held: float) -> dict[str, Any]:
    """What becomes of a training (of another kind) with this fault, in a process of its own."""
    words = [sys.executable, "-m", "tests.harm", name, str(held), *kind]
    done = subprocess.run(words, capture_output=True, text=True, timeout=4 * SECONDS, check=False)
    if done.returncode:
        return {
            "name": name,
            "kind": FAULTS[name].kind,
            "harm": f"the fault was not played: {done.stderr[-2000:]}",
        }
    found: dict[str, Any] = json.loads(done.stdout)
    return found
