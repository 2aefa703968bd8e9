"""How latency follows the number of groups, as far as it was measured.

Time between tokens (p50) of a 0.6B model alone on one H200, 16 requests at a time, 512 tokens in and 128 out, one run
each (two at 32 groups): 6.35 ms in 8 groups, 3.83 in 16, 2.84 in 32, 2.77 in 64, 2.42 on the whole GPU. So below 32 a
doubling takes 25 to 40 % off it, and above it hardly anything: reading the weights is bound by the memory's bandwidth,
which no slice divides. Three decoding neighbours made it 43 % longer (86 % for 4B). The time to the first token did not
follow the groups in those runs; for long prompts, which were not run, it should.
"""

from bisect import bisect_left
from math import exp, log
from typing import Final

_ITL_MS: Final = ((8, 6.35), (16, 3.83), (32, 2.84), (64, 2.77), (132, 2.42))


def itl_ms(groups: float) -> float:
    """Return the time between tokens that was measured in that many groups, between two sizes by interpolation.

    Below the smallest size it goes on as between the two smallest, above the largest it stays.
    """
    sizes = [size for size, _ in _ITL_MS]
    place = min(max(1, bisect_left(sizes, groups)), len(sizes) - 1)
    (low, slow), (high, fast) = _ITL_MS[place - 1], _ITL_MS[place]
    part = min(1.0, (log(groups) - log(low)) / (log(high) - log(low)))
    return exp(log(slow) + part * (log(fast) - log(slow)))


def gain(groups: int, more: int) -> float:
    """Return the time between tokens in ``more`` groups, as a share of that in ``groups``."""
    return itl_ms(more) / itl_ms(groups)
