"""Imports what memfit has loaded in a child where its target would begin to learn.

Never imported by a child itself: what these modules take is measured in a process apart, so that a
plan leaves it out.
"""

from __future__ import annotations

import memfit.child.target  # noqa: F401 - to be loaded is all that is asked
from memfit.libraries import all_libraries

all_libraries()
