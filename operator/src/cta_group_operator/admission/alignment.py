"""vLLM's arguments of one pod against the slice that it asks for: what is changed, advised, or refused."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import msgspec

from cta_group_core.errors import SliceTooSmall
from cta_group_core.names import ANNOTATION_ALIGN, ANNOTATION_CONTAINER
from cta_group_core.vllm.align import Alignment as Aligned
from cta_group_core.vllm.align import Edit, align
from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.detect import ContainerFacts, Detected, detect
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.memory import SliceMemory, largest_utilization
from cta_group_core.vllm.parallel import parallel_objection, ranks_of
from cta_group_operator.admission.gpu_kinds import GpuKind
from cta_group_operator.admission.pod import Container, Pod
from cta_group_operator.admission.requests import Asked
from cta_group_operator.settings import Alignment


@dataclass(frozen=True, slots=True)
class Server:
    """The container of a pod that runs vLLM in a slice."""

    asked: Asked
    detected: Detected

    @property
    def arguments(self) -> Arguments:
        """Its arguments."""
        return self.detected.arguments


@dataclass(frozen=True, slots=True)
class Advice:
    """What alignment came to."""

    aligned: Aligned | None = None
    """The new arguments; None when nothing changes."""
    edits: tuple[Edit, ...] = ()
    by_hand: str = ""
    """In words, what should be changed and was not."""
    warnings: tuple[str, ...] = ()


def mode_of(pod: Pod, default: Alignment) -> tuple[Alignment, list[str]]:
    """Return what the pod's annotation asks for, and a warning when it asks for nothing that exists."""
    text = pod.annotations.get(ANNOTATION_ALIGN)
    if text is None:
        return default, []
    try:
        return Alignment(text), []
    except ValueError:
        allowed = ", ".join(Alignment)
        return default, [f"annotation {ANNOTATION_ALIGN}: {text!r} is none of {allowed}; {default} is used"]


def find_server(pod: Pod, asked: Sequence[Asked]) -> tuple[Server | None, list[str]]:
    """Return the vLLM container among those that ask for groups, and a warning when that is not clear."""
    facts = [_facts(one) for one in pod.containers]
    detection = detect(facts, pod.metadata.labels or {}, named=pod.annotations.get(ANNOTATION_CONTAINER))
    if detection.found is None:
        return None, [detection.reason] if detection.reason else []
    name = detection.found.container.name
    for one in asked:
        if one.container.name == name:
            return Server(one, detection.found), []
    return None, [f"container {name} looks like vLLM and asks for no groups; its arguments were not looked at"]


def _facts(container: Container) -> ContainerFacts:
    probes = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    return ContainerFacts(
        name=container.name,
        image=container.image,
        command=tuple(container.command or ()),
        args=tuple(container.args or ()),
        ports=tuple(port.container_port for port in container.ports or ()),
        probe_paths=tuple(one.http_get.path for one in probes if one is not None and one.http_get is not None),
    )


def advise(server: Server, kinds: Collection[GpuKind], mode: Alignment) -> Advice:
    """Decide about the arguments; the value chosen starts on every kind of GPU where vLLM can start at all."""
    if mode is Alignment.OFF:
        return Advice()
    if not kinds:
        return Advice(warnings=("no GPU of this cluster is known yet: vLLM's arguments were not fitted to the slice",))
    shares, too_small = _shares(server, kinds)
    if not shares:
        return Advice(by_hand=too_small[0], warnings=too_small) if too_small else Advice()
    container = server.detected.container
    aligned = align(container.command, container.args, server.arguments, shares)
    warnings = (*aligned.warnings, *too_small, *_race_warning(kinds))
    if aligned.not_patchable:
        return Advice(by_hand=aligned.not_patchable, warnings=(f"not changed: {aligned.not_patchable}", *warnings))
    if mode is Alignment.REPORT:
        return _report(aligned, warnings)
    told = [f"set {edit.flag}={edit.after} (was {edit.before or 'not given'})" for edit in aligned.edits]
    return Advice(aligned if aligned.changes else None, aligned.edits, warnings=(*told, *warnings))


def _shares(server: Server, kinds: Collection[GpuKind]) -> tuple[list[SliceMemory], tuple[str, ...]]:
    """Return the slices in which vLLM can start, in a fixed order, and why it cannot in the others."""
    groups, eager = server.asked.groups, server.arguments.switch(Flag.ENFORCE_EAGER)
    shares, too_small = [], []
    for kind in sorted(kinds, key=lambda kind: (kind.product, kind.memory_mib)):
        share = kind.share(groups) if kind.takes(groups) else None
        if share is None:
            continue
        try:
            largest_utilization(share, eager=eager)
        except SliceTooSmall as small:
            too_small.append(str(small))
        else:
            shares.append(share)
    return shares, tuple(too_small)


def _report(aligned: Aligned, warnings: tuple[str, ...]) -> Advice:
    wanted = "; ".join(f"{edit.flag}={edit.after} ({edit.why})" for edit in aligned.edits)
    if not wanted:
        return Advice(warnings=warnings)
    return Advice(by_hand=f"set {wanted}", warnings=(f"would be set: {wanted}", *warnings))


def _race_warning(kinds: Collection[GpuKind]) -> tuple[str, ...]:
    if all(kind.limits_memory for kind in kinds):
        return ()
    return ("memory limits are off: start the vLLM servers of one GPU one after the other, or they take each other's",)


def objection(server: Server, kinds: Collection[GpuKind]) -> str | None:
    """Say why the server's ranks can run on no kind of GPU that takes the request; None when they can on one."""
    ranks, groups = ranks_of(server.arguments), server.asked.groups
    found = [parallel_objection(ranks, groups, kind.units.capacity) for kind in kinds if kind.takes(groups)]
    return found[0] if found and None not in found else None


def claims(text: str) -> list[tuple[str, str]] | None:
    """Return flag and value of each change that an annotation claims; None when it is not one of ours."""
    try:
        read = msgspec.json.decode(text, type=list[_Claim])
    except msgspec.MsgspecError:
        return None
    return [(claim.flag, claim.to) for claim in read]


class _Claim(msgspec.Struct):
    flag: str
    to: str


def holds(text: str, arguments: Arguments) -> bool:
    """Tell whether every change that an annotation claims is what the arguments say now."""
    claimed = claims(text)
    if not claimed:
        return False
    said = {one.flag.value: one.text for one in arguments.occurrences}
    return all(said.get(flag) == value for flag, value in claimed)
