"""What is wrong with a server in a slice beside its memory: what is refused, and what is worth a warning.

Facts: `CUDA_VISIBLE_DEVICES` counts from the GPUs that MPS shows; a service called `vllm` brings a variable VLLM_PORT
that holds a URL (vllm#34199); a liveness probe without a start-up probe ended servers that were still loading
(vllm#17386); a cold start took 118 s in a slice of 32 groups of an H200, whatever the number of groups.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cta_group_core.errors import SliceTooSmall
from cta_group_core.names import PROTECTED_ENV, PROTECTED_ENV_PREFIXES
from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.environment import is_known
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.memory import PROFILED_MIB, for_weights_and_cache_mib
from cta_group_core.vllm.model_size import ModelSize
from cta_group_core.vllm.plan import Server, cache_room_mib
from cta_group_core.vllm.shown import shown

SHORTEST_START_SECONDS = 240
"""Twice the cold start that was measured."""
_EAGER_BELOW_GROUPS = 16
_MISLEADING = {
    "CUDA_VISIBLE_DEVICES": "the slice's GPU is chosen by the plugin; with MPS its index differs, remove the variable",
    "VLLM_USE_PORTABLE_LAYER": "no release of vLLM has this variable",
}


_PERIOD_SECONDS, _FAILURES = 10, 3
"""What the API server fills in for a probe."""


def patience_seconds(
    initial_delay_seconds: int | None, period_seconds: int | None, failure_threshold: int | None
) -> int:
    """Return how long a container may fail a probe from its start on; None is a number that is not given."""
    return (initial_delay_seconds or 0) + (period_seconds or _PERIOD_SECONDS) * (failure_threshold or _FAILURES)


@dataclass(frozen=True, slots=True)
class Probes:
    """How long a container may take to start before a probe ends it, in seconds; None without such a probe."""

    startup_seconds: int | None = None
    liveness_seconds: int | None = None


def protected_variables(container: ContainerFacts) -> list[str]:
    """Refuse variables that would replace the slice's own."""
    return [
        f"container {container.name} sets {shown(name)}: it would replace what the slice is made of; remove it"
        for name in container.surroundings.variables
        if name in PROTECTED_ENV or name.startswith(PROTECTED_ENV_PREFIXES)
    ]


def misleading_variables(container: ContainerFacts) -> list[str]:
    """Warn of variables that do not do what they seem to do. Those that the container's own words use are left out."""
    words = " ".join((*container.command, *container.args, *container.surroundings.files.values()))
    own = _runs_what_is_not_seen(container)
    found = []
    for name in container.surroundings.variables:
        why = _MISLEADING.get(name)
        if why is None and not is_known(name) and name not in words and not own:
            why = "no release of vLLM has this variable"
        if why is not None:
            found.append(f"container {container.name} sets {name}: {why}")
    return found


def _runs_what_is_not_seen(container: ContainerFacts) -> bool:
    """Tell whether a program that is not at hand runs, which may read variables of any name."""
    words = [word for text in (*container.command, *container.args) for word in text.split()]
    return not words or any(
        word.endswith((".sh", ".py")) and word not in container.surroundings.files for word in words
    )


def service_warning(services: Collection[str], *, links: bool) -> list[str]:
    """Warn of a service that brings a variable which vLLM takes for its own port."""
    if not links or "vllm" not in services:
        return []
    return [
        "a service is called vllm, so VLLM_PORT holds a URL and vLLM ends: set enableServiceLinks: false, or rename it"
    ]


def probe_warning(probes: Probes) -> list[str]:
    """Warn of probes that end a server which still loads."""
    name, seconds = "startup", probes.startup_seconds
    if seconds is None:
        name, seconds = "liveness", probes.liveness_seconds
    if seconds is None or seconds >= SHORTEST_START_SECONDS:
        return []
    told = f"the {name} probe gives vLLM {seconds} s to start, and a cold start took 118 s in a slice, model not loaded"
    return [f"{told}: give it {SHORTEST_START_SECONDS} s or more with a startup probe"]


def eager_advice(arguments: Arguments, groups: int) -> list[str]:
    """Advise against CUDA graphs in the smallest slices."""
    if groups >= _EAGER_BELOW_GROUPS or arguments.switch(Flag.ENFORCE_EAGER):
        return []
    return [f"{groups} groups: --enforce-eager leaves 0.5 to 1 GiB more of the slice for the KV cache"]


@dataclass(frozen=True, slots=True)
class WeightsAnswer:
    """Whether the model's weights fit."""

    refused: str = ""
    """They cannot, and their size is known for certain."""
    warning: str = ""


def judge_weights(server: Server, kinds: Sequence[GpuKind], edited: Collection[str]) -> WeightsAnswer:
    """Compare the model's weights with what the slice has for them on every kind of GPU.

    ``edited``: the flags that are set.
    """
    size, model = server.size, shown(server.arguments.model or "")
    if size is None:
        return WeightsAnswer()
    planned = Flag.MAX_NUM_SEQS in edited
    room = cache_room_mib(server, planned=planned) + size.weights_mib
    share = min(server.shares, key=lambda one: one.limit_mib)
    text = ""
    if _at_most_mib(size) >= room:
        better = _smallest(server, kinds, planned=planned)
        text = f"vLLM has {max(0, room)} MiB for weights and KV cache in {share}: {better}"
    elif Flag.GPU_MEMORY_UTILIZATION not in edited and _at_most_mib(size) >= (own := _own_room_mib(server, room)):
        most = server.fits(planned=False)[0]
        text = f"the share given leaves vLLM {max(0, own)} MiB for weights and KV cache: {most} is the most in {share}"
    if not text:
        longest = "" if Flag.MAX_MODEL_LEN in edited else _context_warning(server, room - size.weights_mib)
        return WeightsAnswer(warning=longest)
    known = size.known if size.exact else f"{size.known}, perhaps 5 % too few"
    text = f"the weights of {model} take about {size.weights_mib} MiB ({known}), and {text}"
    return WeightsAnswer(refused=text) if size.exact else WeightsAnswer(warning=text)


def _own_room_mib(server: Server, room_mib: int) -> int:
    """Return what the user's own share has for weights and KV cache; ``room_mib`` where none is known."""
    asked = server.arguments.utilization().value
    return room_mib if asked is None else min(asked.of(one.total_mib) for one in server.shares) - PROFILED_MIB


def _at_most_mib(size: ModelSize) -> int:
    """Return the weights as they may be at most: a name rounds."""
    return size.weights_mib if size.exact else size.weights_mib * 21 // 20


def _smallest(server: Server, kinds: Sequence[GpuKind], *, planned: bool) -> str:
    """Say which slice would hold them, the smallest that does on every kind."""
    sizes = [_smallest_on(server, kind, planned=planned) for kind in kinds]
    known = [groups for groups in sizes if groups is not None]
    if not known or len(known) < len(sizes):
        return "they need a whole GPU, or several with --tensor-parallel-size"
    return f"{max(known)} groups would hold them"


def _smallest_on(server: Server, kind: GpuKind, *, planned: bool) -> int | None:
    weights = _at_most_mib(server.size) if server.size is not None else 0
    load = server.load(planned=planned)
    for share in kind.slices():
        try:
            if for_weights_and_cache_mib(share, load) > weights:
                return share.groups
        except SliceTooSmall:
            continue
    return None


def _context_warning(server: Server, room_mib: int) -> str:
    """Say that a context does not fit, where the model's shape is known and nothing fits it by itself."""
    size = server.size
    if size is None or size.kv_bytes_per_token is None:
        return ""
    reading = server.arguments.model_length()
    if reading.given is not None and reading.value is None:
        return ""
    asked = reading.value or size.longest_context
    most = room_mib * 2**20 // size.kv_bytes_per_token
    if asked is None or asked <= most:
        return ""
    return (
        f"a context of {asked} tokens needs more KV cache than the slice has: --max-model-len={most} is the longest "
        "that fits"
    )
