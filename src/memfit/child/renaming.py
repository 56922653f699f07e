"""Lets a script rename folders where the kernel's overlay cannot.

Without the machine's own root, an overlay moves no folder of the layer below it: rename() says that
source and target are on different file systems. The folder is copied then, into the overlay.
"""

# ruff: noqa: PTH106, PTH112 - any path that os.rename takes

from __future__ import annotations

import errno
import functools
import os
import shutil
from collections.abc import Callable
from typing import Any


def rename_as_without_overlay() -> None:
    """Stand before the two functions that rename."""
    for name in ("rename", "replace"):
        setattr(os, name, _renaming(getattr(os, name)))


def _renaming(rename: Callable[..., None]) -> Callable[..., None]:
    @functools.wraps(rename)
    def renamed(src: Any, dst: Any, **options: Any) -> None:
        try:
            rename(src, dst, **options)
        except OSError as error:
            if error.errno != errno.EXDEV or options or not os.path.isdir(src):
                raise
            if os.path.isdir(dst):
                os.rmdir(dst)  # as rename() does: an empty one is replaced
            shutil.copytree(src, dst, symlinks=True)
            shutil.rmtree(src)

    return renamed
