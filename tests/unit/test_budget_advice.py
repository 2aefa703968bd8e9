"""What is advised: more memory, more replicas, more groups, fewer, or that groups are not the answer."""

import math
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cta_group_core.budget.advice import advise_fewer, advise_more
from cta_group_core.budget.factors import gain, itl_ms
from cta_group_core.budget.histogram import Histogram
from cta_group_core.budget.objectives import Budget, Measure
from cta_group_core.budget.outcome import Outcome, kept, outcomes
from cta_group_core.budget.peaks import LEAST_SECONDS, MEMORY_SECONDS, Peak, Peaks
from cta_group_core.budget.sizes import Sizes, smallest_for_memory
from cta_group_core.budget.window import Observed
from cta_group_core.profiles import profile_named
from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.model_size import size_of
from cta_group_core.vllm.plan import Server

PROFILE = profile_named("h200")
H200 = GpuKind(PROFILE.product, PROFILE.memory_total_mib, 1024, PROFILE.units, limits_memory=True)
BOUNDS = (0.01, 0.025, 0.05, 0.1, 0.5, 1.0, math.inf)


def latencies(seconds: float, times: int = 200) -> Histogram:
    """Return a histogram of one latency."""
    return Histogram(BOUNDS, tuple(float(times if seconds <= bound else 0) for bound in BOUNDS))


def observed(
    ttft: float = 0.3, itl: float = 0.02, *, waiting: float = 0.0, cache: float | None = 0.3, preemptions: float = 0.0
) -> Observed:
    """Return what one server told."""
    told = {Measure.TTFT: latencies(ttft), Measure.ITL: latencies(itl)}
    return Observed(600, 1, told, preemptions=preemptions, waiting=waiting, cache_usage=cache)


def judge(budget: str, seen: Observed) -> Sequence[Outcome]:
    """Return each objective with its outcome."""
    return outcomes(Budget.parse(budget), seen)


def sizes(groups: int) -> Sizes:
    """Return the sizes of an H200."""
    return Sizes.of(groups, [H200])


def peak(ratio: float, *, waiting: float = 0, cache: float = 0.2, preemptions: float = 0) -> Peak:
    """Return the worst of five hours."""
    return Peak(0, 5 * 3600, ratio, waiting, preemptions, cache)


@pytest.mark.parametrize(
    ("seen", "groups", "said"),
    [
        (observed(0.9, cache=0.97), 64, "memory is short, not SMs: the KV cache was used to 97%; 64 groups bring"),
        (observed(0.9, preemptions=3, cache=None), 64, "3 requests were preempted"),
        (observed(0.9, waiting=4), 64, "a queue: 4.0 requests wait in each server"),
        (observed(0.9), 64, "64 groups, then look again: no queue"),
    ],
)
def test_what_explains_a_slow_first_token(seen: Observed, groups: int, said: str) -> None:
    """Memory before the queue, the queue before the SMs; each says what else helps."""
    advice = advise_more(judge("ttft=400ms,itl=50ms", seen), seen, sizes(32))
    assert advice.groups == groups
    assert said in advice.text


def test_slow_tokens_get_the_groups_that_were_measured_to_help() -> None:
    """From 8 groups 16 took 40 % off; 32 is advised where that is not enough."""
    seen = observed(itl=0.04)
    little = advise_more(judge("itl=40ms", seen), seen, sizes(8))
    much = advise_more(judge("itl=24ms", seen), seen, sizes(8))
    assert little.groups is not None
    assert much.groups is not None
    assert 8 < little.groups < much.groups <= 32
    assert "bandwidth is shared" in little.text


@pytest.mark.parametrize(("groups", "limit"), [(64, "20ms"), (32, "5ms")])
def test_slow_tokens_that_groups_do_not_explain(groups: int, limit: str) -> None:
    """Above 32 groups hardly anything was gained: no number is given, and why is said."""
    seen = observed(itl=0.04)
    advice = advise_more(judge(f"itl={limit}", seen), seen, sizes(groups))
    assert advice.groups is None
    assert advice.text.startswith("not a matter of groups")
    assert "bandwidth" in advice.text


@pytest.mark.parametrize(
    "seen", [observed(0.9, cache=1.0), observed(0.9, waiting=9), observed(0.9), observed(itl=0.3)], ids=range(4)
)
@pytest.mark.parametrize("groups", [128, 256, 4])
def test_a_whole_gpu_or_an_odd_request_gets_no_number(seen: Observed, groups: int) -> None:
    """Nothing is larger, or nothing is known of it: the advice says what else to do."""
    advice = advise_more(judge("ttft=400ms,itl=50ms", seen), seen, sizes(groups))
    assert advice.groups is None
    assert advice.text


@given(
    st.floats(0.001, 0.9),
    st.floats(0.001, 0.9),
    st.floats(0, 5),
    st.none() | st.floats(0, 1),
    st.sampled_from([8, 16, 40, 64, 120, 128, 256]),
)
def test_advice_is_a_size_that_can_be_asked_for(
    ttft: float, itl: float, waiting: float, cache: float | None, groups: int
) -> None:
    """Never fewer groups while the budget is broken, never a size that no GPU takes, always a sentence."""
    seen = observed(ttft, itl, waiting=waiting, cache=cache)
    found = judge("ttft=100ms,itl=20ms", seen)
    if kept(found) is not False:
        return
    advice = advise_more(found, seen, sizes(groups))
    assert advice.text
    assert advice.groups is None or (advice.groups > groups and H200.takes(advice.groups))


def test_fewer_groups_need_an_hour_without_load() -> None:
    """Not after ten minutes, and not when the groups were needed at the worst of them."""
    assert "after an hour" in advise_fewer(None, sizes(64), 8).text
    for busy in (peak(0.9), peak(0.3, waiting=2), peak(0.3, cache=0.95), peak(0.3, preemptions=1)):
        advice = advise_fewer(busy, sizes(64), 8)
        assert (advice.groups, "were needed" in advice.text) == (64, True)


def test_fewer_groups_are_half_at_least() -> None:
    """One step at a time, by what the worst latency leaves and what the memory needs."""
    assert advise_fewer(peak(0.1), sizes(64), 8).groups == 32
    assert advise_fewer(peak(0.6), sizes(64), 8).groups == 48
    assert advise_fewer(peak(0.1), sizes(64), 56).groups == 56
    assert advise_fewer(peak(0.1), sizes(8), 8).groups == 8
    kept_for_memory = advise_fewer(peak(0.1), sizes(64), 64)
    assert (kept_for_memory.groups, "its memory needs them" in kept_for_memory.text) == (64, True)


def test_unknown_weights_give_no_number() -> None:
    """Whether the model fits fewer groups is never guessed."""
    advice = advise_fewer(peak(0.1), sizes(64), None)
    assert (advice.groups, "not known" in advice.text) == (None, True)
    assert advise_fewer(peak(0.1), sizes(256), None).text == "the budget is kept"


def test_the_worst_of_a_day_counts() -> None:
    """Quiet hours do not make the busy one forgotten until it is a day old; without requests nothing is said."""
    seen, peaks = observed(), Peaks()
    assert Peaks().after(0, judge("e2e=1s", seen), seen) == Peaks()
    busy, quiet = judge("ttft=600ms", observed(0.5)), judge("ttft=60s", seen)
    peaks = peaks.after(0.0, busy, seen)
    assert peaks.worst() is None
    for moment in range(30, int(LEAST_SECONDS) + 60, 30):
        peaks = peaks.after(float(moment), quiet, seen)
    worst = peaks.worst()
    assert worst is not None
    assert worst.ratio == pytest.approx(0.5 / 0.6)
    assert len(peaks.stretches) < 10
    later = peaks.after(MEMORY_SECONDS + LEAST_SECONDS, quiet, seen).worst()
    assert later is None or later.ratio < 0.1


def test_the_sizes_are_those_of_every_gpu_it_runs_on() -> None:
    """Two kinds of GPU take what both take; an unknown one takes nothing."""
    a100 = profile_named("a100-80")
    kind = GpuKind(a100.product, a100.memory_total_mib, 1024, a100.units, limits_memory=True)
    both = Sizes.of(32, [H200, kind]).allowed
    assert both == tuple(range(8, 105, 8))
    assert Sizes.of(32, []).allowed == ()
    assert not Sizes.of(32, []).is_part


@pytest.mark.parametrize(
    ("model", "usage", "smallest"),
    [("Qwen/Qwen3-0.6B", 0.0, 8), ("Qwen/Qwen3-4B", 0.0, 16), ("Qwen/Qwen3-4B", 0.9, 64)],
)
def test_the_memory_in_use_decides_the_smallest_size(model: str, usage: float, smallest: int) -> None:
    """Weights, and the KV cache that was used with a quarter to spare."""
    arguments = read_arguments(None, [model])
    share = H200.share(64)
    assert share is not None
    server = Server(arguments, [share], "0.27.1", size_of(arguments))
    found = smallest_for_memory(server, sizes(64).allowed, 64, [H200], usage)
    assert found == smallest
    assert smallest_for_memory(Server(read_arguments(None, ["m"]), [share]), sizes(64).allowed, 64, [H200], 0.1) is None


def test_the_measured_times_are_met() -> None:
    """At the sizes that were run the factor is the one that was measured; between them it lies between."""
    assert [itl_ms(size) for size in (8, 16, 32, 64, 132)] == pytest.approx([6.35, 3.83, 2.84, 2.77, 2.42])
    assert itl_ms(16) > itl_ms(24) > itl_ms(32)
    assert itl_ms(4) > itl_ms(8)
    assert itl_ms(500) == itl_ms(132)
    assert gain(8, 16) == pytest.approx(3.83 / 6.35)
