"""Make every Python below `memfit run` listen, then load the customization that this stands before.

Any Python may come past here, also old ones, and those without memfit: whatever goes wrong, the
program runs on as if nothing were here.
"""

# ruff: noqa: BLE001, PTH100, PTH120, SIM105, UP010, UP036 - runs anywhere, at no cost

from __future__ import absolute_import

import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))


def _listen():  # type: () -> None
    if sys.version_info < (3, 11) or not sys.platform.startswith("linux"):
        return
    name = "_memfit_inside"
    if name not in sys.modules:
        package = type(sys)(name, "What answers `memfit explain` from inside this process.")
        package.__path__ = [os.path.dirname(_here)]
        sys.modules[name] = package
    from _memfit_inside.listener import listen  # type: ignore[import-not-found]

    listen()


def _step_aside():  # type: () -> None
    sys.path[:] = [folder for folder in sys.path if os.path.abspath(folder or ".") != _here]
    sys.path_importer_cache.pop(_here, None)


def _load_the_other():  # type: () -> None
    """Run the sitecustomize that Python would have found, in this one's place."""
    if sys.version_info[0] < 3:
        import imp

        imp.load_module("sitecustomize", *imp.find_module("sitecustomize"))
        return
    finder = next(f for f in sys.meta_path if getattr(f, "__name__", "") == "PathFinder")
    spec = finder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        # As Python itself says it: there is none.
        raise ImportError("No module named 'sitecustomize'", name="sitecustomize")
    from _frozen_importlib import module_from_spec

    module = module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


try:
    _listen()
except BaseException:
    pass
_step_aside()
_load_the_other()
