"""vLLM's arguments of one pod against the slice that it asks for: what is changed, advised, or refused."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from cta_group_core.align_mode import AlignMode, parse_align_mode
from cta_group_core.errors import InvalidText
from cta_group_core.names import ANNOTATION_ALIGN, ANNOTATION_CONTAINER
from cta_group_core.vllm.align import Alignment as Aligned
from cta_group_core.vllm.align import Edit
from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.detect import ContainerFacts, Detected, detect
from cta_group_core.vllm.findings import Probes
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.judge import Case, Judgement, judge
from cta_group_core.vllm.surroundings import Surroundings, resolve_variables
from cta_group_operator.admission.pod import Container, Pod
from cta_group_operator.admission.requests import Asked


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


def mode_of(pod: Pod, default: AlignMode) -> AlignMode:
    """Return what the pod's annotation asks for; one that cannot be read asks for nothing."""
    text = pod.annotations.get(ANNOTATION_ALIGN)
    if text is None:
        return default
    try:
        return parse_align_mode(text)
    except InvalidText:
        return default


def find_server(pod: Pod, asked: Sequence[Asked]) -> tuple[Server | None, list[str]]:
    """Return the vLLM container among those that ask for groups, and a warning when that is not clear."""
    facts = [facts_of(one) for one in pod.containers]
    detection = detect(
        facts,
        pod.metadata.labels or {},
        named=pod.annotations.get(ANNOTATION_CONTAINER),
        asking={one.container.name for one in asked},
    )
    if detection.found is None:
        return None, [detection.reason] if detection.reason else []
    name = detection.found.container.name
    for one in asked:
        if one.container.name == name:
            return Server(one, detection.found), []
    return None, [f"container {name} looks like vLLM and asks for no groups; its arguments were not looked at"]


def facts_of(container: Container) -> ContainerFacts:
    """Return what of a container is looked at."""
    probes = (container.startup_probe, container.liveness_probe, container.readiness_probe)
    return ContainerFacts(
        name=container.name,
        image=container.image,
        command=tuple(container.command or ()),
        args=tuple(container.args or ()),
        ports=tuple(port.container_port for port in container.ports or ()),
        probe_paths=tuple(one.http_get.path for one in probes if one is not None and one.http_get is not None),
        surroundings=_surroundings(container),
    )


def _surroundings(container: Container) -> Surroundings:
    """Return the container's variables; those that come from elsewhere are not known here."""
    given = ((one.name, None if one.value_from is not None else one.value or "") for one in container.env or ())
    return Surroundings(resolve_variables(given), more_variables=bool(container.env_from))


def judged(server: Server, pod: Pod, kinds: Collection[GpuKind]) -> Judgement:
    """Return everything that can be said of the server in its slice."""
    return judge(case_of(server, pod, kinds))


def case_of(server: Server, pod: Pod, kinds: Collection[GpuKind]) -> Case:
    """Return the server with what surrounds it."""
    container = server.asked.container
    startup, liveness = container.startup_probe, container.liveness_probe
    return Case(
        server.detected,
        server.asked.groups,
        tuple(kinds),
        labels=pod.metadata.labels or {},
        probes=Probes(
            startup_seconds=startup.patience_seconds if startup is not None else None,
            liveness_seconds=liveness.patience_seconds if liveness is not None else None,
        ),
    )


def advise(judgement: Judgement, kinds: Collection[GpuKind], mode: AlignMode) -> Advice:
    """Decide what to do with the answer; the values chosen start on every kind of GPU where vLLM can start at all."""
    if mode is AlignMode.OFF:
        return Advice()
    if not kinds:
        unknown = "no GPU of this cluster is known yet: vLLM's arguments were not fitted to the slice"
        return Advice(warnings=(unknown, *judgement.warnings))
    aligned, warnings = judgement.alignment, judgement.warnings
    if aligned is None:
        return Advice(by_hand=judgement.too_small[0] if judgement.too_small else "", warnings=warnings)
    if aligned.not_patchable:
        return Advice(by_hand=aligned.not_patchable, warnings=(f"not changed: {aligned.not_patchable}", *warnings))
    if mode is AlignMode.REPORT:
        return _report(aligned, warnings)
    told = [f"set {edit.flag}={edit.after} (was {edit.before or 'not given'})" for edit in aligned.edits]
    return Advice(aligned if aligned.changes else None, aligned.edits, warnings=(*told, *warnings))


def _report(aligned: Aligned, warnings: tuple[str, ...]) -> Advice:
    wanted = "; ".join(f"{edit.flag}={edit.after} ({edit.why})" for edit in aligned.edits)
    if not wanted:
        return Advice(warnings=warnings)
    return Advice(by_hand=f"set {wanted}", warnings=(f"would be set: {wanted}", *warnings))
