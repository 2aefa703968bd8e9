"""Everything that can be said of one vLLM server in a slice: what to change, what is refused, what to be warned of."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from cta_group_core.errors import SliceTooSmall
from cta_group_core.vllm.align import Alignment, align
from cta_group_core.vllm.detect import Detected
from cta_group_core.vllm.findings import (
    Probes,
    eager_advice,
    judge_weights,
    probe_warning,
    protected_variables,
    service_warning,
)
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.memory import SliceMemory
from cta_group_core.vllm.model_size import ModelSize, size_of
from cta_group_core.vllm.parallel import parallel_objection, ranks_of
from cta_group_core.vllm.plan import Server

_SPANNING_LABELS = ("leaderworkerset.sigs.k8s.io/name", "ray.io/cluster")


@dataclass(frozen=True, slots=True)
class Case:
    """One server, and what surrounds it."""

    detected: Detected
    groups: int
    kinds: Sequence[GpuKind]
    """The kinds of GPU that its pod can land on."""
    labels: Mapping[str, str] = field(default_factory=dict)
    probes: Probes = field(default_factory=Probes)
    services: Collection[str] = ()
    """Names of services in its namespace, as far as they are known."""
    service_links: bool = True


@dataclass(frozen=True, slots=True)
class Judgement:
    """The answer."""

    alignment: Alignment | None
    """None where no slice is known in which the server could start, and for whole GPUs."""
    too_small: tuple[str, ...] = ()
    """Why it cannot start on some kinds of GPU; on all of them when ``alignment`` is None."""
    refused: tuple[str, ...] = ()
    """What can never work."""
    warnings: tuple[str, ...] = ()
    """What may not work, or not as it seems."""


def judge(case: Case) -> Judgement:
    """Decide everything about a server. Never raises."""
    container, arguments = case.detected.container, case.detected.arguments
    kinds = sorted(case.kinds, key=lambda kind: (kind.product, kind.memory_mib))
    size = model_size_of(case.detected)
    shares, too_small = _shares(case, kinds, size)
    alignment, weights = None, ("", "")
    if shares:
        server = Server(arguments, shares, case.detected.version, size)
        alignment = align(container.command, container.args, server)
        edited = {edit.flag for edit in alignment.edits} if alignment.changes else set()
        usable = [kind for kind in kinds if kind.share(case.groups) in shares]
        answer = judge_weights(server, usable, edited)
        weights = (answer.refused, answer.warning)
    objection = parallel_problem(case)
    refused = [*([objection] if objection else ()), *protected_variables(container), weights[0]]
    warnings = [
        *(alignment.warnings if alignment is not None else ()),
        *too_small,
        *(_race_warning(kinds) if alignment is not None else ()),
        weights[1],
        *(eager_advice(arguments, case.groups) if alignment is not None else ()),
        *probe_warning(case.probes),
        *service_warning(case.services, links=case.service_links),
    ]
    return Judgement(alignment, too_small, tuple(filter(None, refused)), tuple(filter(None, warnings)))


def parallel_problem(case: Case) -> str | None:
    """Say why the server's ranks can run on no kind of GPU that takes the request; None when they can on one."""
    ranks = ranks_of(case.detected.arguments)
    spans = any(label in case.labels for label in _SPANNING_LABELS)
    found = [
        parallel_objection(ranks, case.groups, kind.units.capacity, spans_pods=spans)
        for kind in case.kinds
        if kind.takes(case.groups)
    ]
    return found[0] if found and None not in found else None


def model_size_of(detected: Detected) -> ModelSize | None:
    """Return the size of the model, from the ``config.json`` beside it where that is at hand."""
    model = detected.arguments.model or ""
    config = detected.container.surroundings.configs.get(f"{model.rstrip('/')}/config.json")
    return size_of(detected.arguments, config)


def _shares(case: Case, kinds: Sequence[GpuKind], size: ModelSize | None) -> tuple[list[SliceMemory], tuple[str, ...]]:
    """Return the slices in which vLLM can start, in a fixed order, and why it cannot in the others."""
    shares, too_small = [], []
    for kind in kinds:
        share = kind.share(case.groups) if kind.takes(case.groups) else None
        if share is None:
            continue
        try:
            Server(case.detected.arguments, [share], case.detected.version, size).fits(planned=True)
        except SliceTooSmall as small:
            too_small.append(str(small))
        else:
            shares.append(share)
    return shares, tuple(too_small)


def _race_warning(kinds: Collection[GpuKind]) -> tuple[str, ...]:
    if all(kind.limits_memory for kind in kinds):
        return ()
    return ("memory limits are off: start the vLLM servers of one GPU one after the other, or they take each other's",)
