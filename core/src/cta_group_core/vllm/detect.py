"""Which container of a pod is vLLM, decided by a score over signs; one sign alone is never trusted.

The signs and their rank come from how the stacks declare an engine: the vLLM chart, production-stack, AIBrix, llm-d,
KServe, KubeAI, KAITO, LeaderWorkerSet, and plain manifests.
"""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from cta_group_core.vllm.arguments import Arguments, arguments_of
from cta_group_core.vllm.flags import Flag
from cta_group_core.vllm.scan import Problem
from cta_group_core.vllm.surroundings import NOTHING, Surroundings
from cta_group_core.vllm.variables import line_from_variables
from cta_group_core.vllm.words import CommandLine, Form, command_line

_OFFICIAL_IMAGES = frozenset({"vllm-openai", "vllm-openai-nonroot", "vllm"})
_OTHER_RELEASES = ("lmcache/",)
"""Who publishes an image of that name with releases of their own in its tags."""
_STARTING_IMAGES = frozenset({"vllm-openai", "vllm-openai-nonroot"})
_STARTED_TWICE = (
    "the image starts vLLM by itself and takes this for the model: leave it out of args, or make it the command"
)
_ENGINE_IMAGES = _OFFICIAL_IMAGES | {"llm-d-cuda"}
_BESIDE_ENGINES = frozenset(
    {"bench", "benchmark", "client", "exporter", "gateway", "operator", "proxy", "router", "ui"}
)
"""What an image is that names vLLM and serves no model."""
_SIMULATORS = ("inference-sim", "vllm-simulator")
_NAMES_OF_VLLM = frozenset({"vllm", "vllm-openai", "vllm-leader", "vllm-worker"})
_NAMES = frozenset({"main", "server", "kserve-container", "prefill", "decode", "engine"})
_PORTS = frozenset({8000, 8080, 8200, 5000})
_LABELS_OF_VLLM = {"model.aibrix.ai/engine": "vllm", "app.kubernetes.io/name": "vllm"}
_LABELS = {
    "app.kubernetes.io/component": "serving-engine",
    "llm-d.ai/inference-serving": "true",
    "kserve.io/component": "workload",
}
_LABEL_KEYS = ("kaito.sh/workspace", "leaderworkerset.sigs.k8s.io/name", "model.aibrix.ai/name", "llm-d.ai/role")
# Other servers have --model, --port and -tp too.
_OWN_FLAGS = frozenset({Flag.GPU_MEMORY_UTILIZATION, Flag.MAX_MODEL_LEN, Flag.MAX_NUM_SEQS, Flag.ENFORCE_EAGER})
_LABEL_VERSION = "org.opencontainers.image.version"
# Vendors number images by date (25.09.1) or by a release of their own (6.4.1): no release of vLLM is above 0 so far.
_VERSION = re.compile(r"v?(0\.\d{1,9}\.\d{1,9})(?:$|[-_+.]|rc|post)", re.ASCII)

_CERTAIN = 10
_LIKELY = 5
_HINT = 3
_WEAK_HINT = 2
_THRESHOLD = _CERTAIN


@dataclass(frozen=True, slots=True)
class ContainerFacts:
    """What of a regular container is looked at (init containers are none: they end before the server starts)."""

    name: str
    image: str = ""
    command: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    probe_paths: tuple[str, ...] = ()
    surroundings: Surroundings = NOTHING
    """Its variables, and files that are known."""


@dataclass(frozen=True, slots=True)
class Detected:
    """The container that serves, and how sure that is."""

    container: ContainerFacts
    arguments: Arguments
    score: int
    signs: tuple[str, ...]
    version: str | None
    """vLLM's release from the image tag or a label, such as ``0.27.1``; None for other images, ``latest``, digests."""


@dataclass(frozen=True, slots=True)
class Detection:
    """The answer for a pod: one container, or why none."""

    found: Detected | None
    reason: str = ""
    """Why none was chosen: no sign of vLLM (empty), several alike, or an annotation that names none."""


def detect(
    containers: Sequence[ContainerFacts],
    labels: Mapping[str, str],
    *,
    named: str | None = None,
    asking: Collection[str] = (),
) -> Detection:
    """Find the vLLM container among a pod's regular containers.

    ``named`` is the value of the annotation that names it; it wins over every sign. ``asking`` are the names of those
    that ask for groups: between several that look alike they decide.
    """
    if named is not None:
        return _named(containers, labels, named)
    scored = [_score(container, labels) for container in containers if not _is_simulator(container)]
    likely = [one for one in scored if one.score >= _THRESHOLD]
    best = [one for one in likely if one.score == max(other.score for other in likely)]
    if len(best) > 1:
        best = [one for one in best if one.container.name in asking] or best
    if len(best) > 1:
        names = ", ".join(one.container.name for one in best)
        return Detection(None, f"containers {names} look alike; name the one that serves with ctagroup.dev/container")
    return Detection(best[0] if best else None)


def _named(containers: Sequence[ContainerFacts], labels: Mapping[str, str], named: str) -> Detection:
    for container in containers:
        if container.name == named:
            return Detection(_score(container, labels))
    names = ", ".join(container.name for container in containers)
    return Detection(None, f"ctagroup.dev/container names {named!r}; the pod's containers are {names}")


def _score(container: ContainerFacts, labels: Mapping[str, str]) -> Detected:
    arguments = _arguments(container)
    # Official images also run downloaders and scripts: a command of another program makes the image a weaker sign.
    other = bool(container.command) and not arguments.line.names_vllm
    of_image = _image_signs(container.image, runs_other=other)
    signs = {**of_image, **_argument_signs(arguments, image_tells=bool(of_image)), **_labels_of_vllm(labels)}
    if sum(of_image.values()) == _LIKELY and container.name in _NAMES_OF_VLLM:
        signs["image and container are called after vllm"] = _WEAK_HINT
    if signs:  # a name, a port and a probe alone are what the server of every other engine has too
        signs |= _shape_signs(container, labels)
    version = image_version(container.image) or _label_version(labels)
    return Detected(container, arguments, sum(signs.values()), tuple(signs), version)


def _arguments(container: ContainerFacts) -> Arguments:
    line = command_line(container.command, container.args, container.surroundings)
    if line.form is Form.UNKNOWN and _name_and_tag(container.image)[0] not in _OFFICIAL_IMAGES:
        line = line_from_variables(container.surroundings) or line
    arguments = arguments_of(line, container.surroundings)
    if not container.command and _starts_by_itself(container.image, line):
        problem = Problem(container.args[0], _STARTED_TWICE, rejected=False)
        return replace(arguments, problems=(problem, *arguments.problems))
    return arguments


def _starts_by_itself(image: str, line: CommandLine) -> bool:
    """Tell whether an image's entrypoint gets a command as if it were vLLM's arguments."""
    begins_again = line.names_vllm or line.serves or line.form in {Form.SHELL, Form.SCRIPT}
    return begins_again and _name_and_tag(image)[0] in _STARTING_IMAGES


def _label_version(labels: Mapping[str, str]) -> str | None:
    """Return the version that an image's own label says, where a pod's labels repeat it."""
    match = _VERSION.match(labels.get(_LABEL_VERSION, ""))
    return match.group(1) if match else None


def _image_signs(image: str, *, runs_other: bool) -> dict[str, int]:
    name, _ = _name_and_tag(image)
    if name in _ENGINE_IMAGES:
        return {f"image {name}": _LIKELY if runs_other else _CERTAIN}
    parts = set(re.split(r"[-_.]", name))
    return {f"image {name} names vllm": _LIKELY} if "vllm" in parts and not parts & _BESIDE_ENGINES else {}


def _argument_signs(arguments: Arguments, *, image_tells: bool) -> dict[str, int]:
    if arguments.line.names_vllm:
        return {"the command starts vLLM": _CERTAIN}
    own = any(one.flag in _OWN_FLAGS for one in arguments.occurrences)
    signs = {"flags that vLLM has": _LIKELY} if own else {}
    if arguments.line.serves and image_tells:  # other engines have a command of that name
        signs["the arguments begin with serve"] = _LIKELY
    return signs


def _labels_of_vllm(labels: Mapping[str, str]) -> dict[str, int]:
    says = any(labels.get(key) == value for key, value in _LABELS_OF_VLLM.items())
    return {"labels that say vllm": _HINT} if says else {}


def _shape_signs(container: ContainerFacts, labels: Mapping[str, str]) -> dict[str, int]:
    checks = {
        f"container named {container.name}": (_HINT, container.name in _NAMES_OF_VLLM | _NAMES),
        "a port of a model server": (_WEAK_HINT, not _PORTS.isdisjoint(container.ports)),
        "a probe on /health": (_HINT, "/health" in container.probe_paths),
        "labels of a serving stack": (_HINT, _has_stack_labels(labels) and not _labels_of_vllm(labels)),
    }
    return {sign: points for sign, (points, holds) in checks.items() if holds}


def _has_stack_labels(labels: Mapping[str, str]) -> bool:
    return any(labels.get(key) == value for key, value in _LABELS.items()) or any(key in labels for key in _LABEL_KEYS)


def _is_simulator(container: ContainerFacts) -> bool:
    name, _ = _name_and_tag(container.image)
    return any(simulator in name for simulator in _SIMULATORS)


def image_version(image: str) -> str | None:
    """Return vLLM's version from the tag of an image whose tags are vLLM's own."""
    name, tag = _name_and_tag(image)
    if name not in _OFFICIAL_IMAGES or any(publisher in image for publisher in _OTHER_RELEASES):
        return None
    version = _VERSION.match(tag)
    return version.group(1) if version else None


def _name_and_tag(image: str) -> tuple[str, str]:
    """Split ``registry:5000/team/name:tag@sha256:...``."""
    last = image.partition("@")[0].rpartition("/")[2]
    name, _, tag = last.partition(":")
    return name, tag
