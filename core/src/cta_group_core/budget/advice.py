"""How many groups would keep a budget, with the reasons. Advice only; what SMs cannot explain is said, not guessed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from cta_group_core.budget.factors import gain
from cta_group_core.budget.objectives import Measure
from cta_group_core.budget.outcome import Outcome
from cta_group_core.budget.peaks import Peak
from cta_group_core.budget.sizes import Sizes
from cta_group_core.budget.window import Observed

_CACHE_FULL: Final = 0.9
_QUEUE: Final = 1.0
"""Mean requests that wait in each server, from which on there is a queue."""
_TARGET: Final = 0.8
"""Fewer groups are advised only where the latency would stay below this share of its limit."""
_SHARED: Final = (
    "memory bandwidth is shared with the neighbours whatever the groups (three that decode made it 43 to 86 % longer "
    "on an H200)"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """What to do, in a sentence, and the number of groups where one is advised."""

    text: str
    groups: int | None = None
    """What a pod should ask for; what it asks for now where that is right; None where groups are not the answer, or
    it is not known."""


def advise_more(found: Sequence[Outcome], observed: Observed, sizes: Sizes) -> Advice:
    """Advise for a budget that is not kept. The first thing that explains it is told."""
    if (observed.cache_usage or 0) >= _CACHE_FULL or observed.preemptions:
        return _more_memory(observed, sizes)
    broken = [one for one in found if one.is_kept is False]
    only_between = all(one.objective.measure is Measure.ITL for one in broken)
    if observed.waiting >= _QUEUE and not only_between:
        return _more_servers(observed, sizes)
    if only_between:
        return _faster_tokens(max(one.ratio or 1.0 for one in broken), sizes)
    return _faster_prompts(sizes)


def advise_fewer(peak: Peak | None, sizes: Sizes, smallest: int | None) -> Advice:
    """Advise for a budget that is kept. ``smallest``: size that holds the memory in use, None where not known."""
    if not sizes.is_part:
        return Advice("the budget is kept")
    keeps = f"{sizes.groups} groups keep the budget"
    if peak is None:
        return Advice(f"{keeps}; whether fewer would is said after an hour with enough requests", sizes.groups)
    hours = f"in the last {max(1, round((peak.until - peak.since) / 3600))} h"
    fewer = _fewer(peak, sizes)
    if fewer is None:
        return Advice(f"{keeps}, and {hours} they were needed", sizes.groups)
    used = f"the KV cache was used to {peak.cache_usage:.0%}"
    why = f"{hours} no latency was above {peak.ratio:.0%} of its limit and {used}"
    if smallest is None:
        told = "whether the weights fit fewer groups is not known (kubectl cta align tells with a model's config.json)"
        return Advice(f"{keeps}; {why}, so fewer may do, but {told}", None)
    if max(fewer, smallest) >= sizes.groups:
        return Advice(f"{keeps}, and its memory needs them although {why}", sizes.groups)
    assumed = "reckoned as if every latency grew as the groups shrink, which is more than was measured"
    fewer = max(fewer, smallest)
    return Advice(f"{fewer} groups would do: {why}; {assumed}. One step at a time, then look again", fewer)


def _fewer(peak: Peak, sizes: Sizes) -> int | None:
    """Return the smallest size, half of now at least, that would keep the latencies; None where there is none."""
    is_loaded = peak.waiting >= _QUEUE or peak.preemptions or peak.cache_usage >= _CACHE_FULL
    if is_loaded or peak.ratio > _TARGET:
        return None
    fewer = sizes.at_least(max(sizes.groups / 2, sizes.groups * peak.ratio / _TARGET))
    return fewer if fewer is not None and fewer < sizes.groups else None


def _more_memory(observed: Observed, sizes: Sizes) -> Advice:
    usage = "" if observed.cache_usage is None else f"the KV cache was used to {observed.cache_usage:.0%}"
    preempted = f"{observed.preemptions:.0f} requests were preempted" if observed.preemptions else ""
    why = " and ".join(filter(None, (usage, preempted)))
    others = "or more replicas, a shorter --max-model-len, or fewer --max-num-seqs"
    more = sizes.more() if sizes.is_part else None
    if more is None:
        return Advice(f"memory is short, not SMs: {why}; {others.removeprefix('or ')}")
    return Advice(f"memory is short, not SMs: {why}; {more} groups bring the memory of {more}, {others}", more)


def _more_servers(observed: Observed, sizes: Sizes) -> Advice:
    why = f"{observed.waiting:.1f} requests wait in each server on average while its KV cache has room"
    more = sizes.more() if sizes.is_part else None
    if more is None:
        return Advice(f"a queue, not the slice: {why}; more replicas")
    return Advice(f"a queue: {why}; more replicas, or {more} groups for each, so that each takes more", more)


def _faster_tokens(ratio: float, sizes: Sizes) -> Advice:
    larger = [one for one in sizes.allowed if one > sizes.groups] if sizes.is_part else []
    enough = next((one for one in larger if ratio * gain(sizes.groups, one) <= 1), None)
    if enough is not None:
        part = 1 - gain(sizes.groups, enough)
        told = f"{enough} groups took {part:.0%} off the time between tokens of {sizes.groups} (0.6B alone on an H200)"
        return Advice(f"{enough} groups: {told}; {_SHARED}", enough)
    told = (
        "more groups would not be enough by what was measured" if larger else "it has all groups of a GPU, or several"
    )
    return Advice(f"not a matter of groups: {told}; {_SHARED}. Fewer --max-num-seqs, more replicas, or a smaller model")


def _faster_prompts(sizes: Sizes) -> Advice:
    more = sizes.more() if sizes.is_part else None
    if more is None:
        return Advice(
            "prompts take too long without a queue, on all groups of a GPU: shorter prompts or a smaller model"
        )
    told = "reading prompts is computing, which SMs speed up; how much for your prompts nobody has measured"
    return Advice(f"{more} groups, then look again: no queue and a KV cache with room; {told}", more)
