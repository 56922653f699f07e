"""The emulator with our game in a process that holds nothing else; printed as JSON."""

from __future__ import annotations

import json
import os

from benchmarks.accuracy.procfs import memory


def main() -> None:
    """Memory before the emulator is loaded, with one console, and with four more."""
    import numpy as np

    np.zeros(1)
    sizes = [memory(os.getpid())]
    from memfit.systems.fighter.cartridge import read_cartridge
    from memfit.systems.fighter.console import Console

    consoles = [Console(read_cartridge(None))]
    consoles[0].run(600)
    sizes.append(memory(os.getpid()))
    for _ in range(4):
        consoles.append(Console(read_cartridge(None)))
        consoles[-1].run(600)
    sizes.append(memory(os.getpid()))
    names = ("python and numpy", "one console", "five consoles")
    print(
        json.dumps(
            {
                name: {"rss": size.rss, "pss": size.pss}
                for name, size in zip(names, sizes, strict=True)
                if size is not None
            }
        )
    )


if __name__ == "__main__":
    main()
