"""Keeps Python from holding up every thread: its garbage collector, and the one thread that runs at a time.

A pod's creation waits for an answer while the rest of the process works; an answer may take 10 ms in all.
"""

import gc
import sys
from typing import Final

_SWITCH_SECONDS: Final = 0.0005
"""After so long of computing, another thread gets its turn. An answer needs about five turns; Python's own 0.005 s for
each would be more than it may take."""
_YOUNG, _MIDDLE, _OLD = 2000, 5, 100
"""When Python looks for garbage: in the youngest objects after so many new ones, in older ones after so many of these
looks. A look at all objects of 10,000 pods takes 120 ms. With Python's own numbers (700, 10, 10) a first list has many
of them; with these, none. Hardly anything of ours is garbage that only such a look finds."""


def keep_short() -> None:
    """Set both. What was imported never becomes garbage and is not looked at again."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.set_threshold(_YOUNG, _MIDDLE, _OLD)
    gc.freeze()


def spare_what_is_there() -> None:
    """Never look at what there is now again, as when a cluster was listed. It still goes when nobody has it."""
    gc.freeze()
