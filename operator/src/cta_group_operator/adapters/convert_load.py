"""What a pod takes of a node's cpu and memory, as the scheduler counts it.

Source: Kubernetes 1.37, ``PodRequests`` in the resource package of component-helpers. Containers and sidecars run
together; an init container runs beside the sidecars before it, and the largest of these moments counts. What is said
for the pod as a whole takes the place of that, and the overhead of its runtime class comes on top.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from functools import lru_cache
from typing import Any, Final

import msgspec

from cta_group_core.errors import InvalidText
from cta_group_core.quantities import parse_quantity
from cta_group_core.scheduling import Load
from cta_group_operator.adapters import wire
from cta_group_operator.ports import Json

_READ: Final = ("resources", "restartPolicy")
"""What of a container says what it takes."""


def read_load(body: Json) -> Load:
    """Return what a pod takes beside groups; nothing of one that cannot be read."""
    found = body["spec"]
    parts = ("resources", "overhead")
    spec: dict[str, Any] = {name: found[name] for name in parts if name in found}
    for kind in ("containers", "initContainers"):
        spec[kind] = [{name: one[name] for name in _READ if name in one} for one in found.get(kind) or ()]
    try:
        read = msgspec.convert(spec, wire.PodSpec)
    except msgspec.ValidationError:
        return Load()
    return Load(cpu_milli=load_of(read, "cpu", 1000), memory_bytes=load_of(read, "memory"), pods=1)


def load_of(spec: wire.PodSpec, name: str, scale: int = 1) -> int:
    """Return how much of one resource a pod takes, times ``scale``, rounded up."""
    before = tuple((one.restart_policy == "Always", _asked(one, name)) for one in spec.init_containers or ())
    beside = tuple(_asked(one, name) for one in spec.containers or ())
    whole = (spec.resources.requests if spec.resources else None) or {}
    return _taken(before, beside, whole.get(name), (spec.overhead or {}).get(name, "0"), scale)


def _asked(container: wire.Container, name: str) -> str:
    requests = container.resources.requests if container.resources else None
    return requests.get(name, "0") if requests else "0"


@lru_cache(maxsize=4096)  # pods of one template ask alike, and each is told several times
def _taken(
    before: tuple[tuple[bool, str], ...], beside: tuple[str, ...], whole: str | None, overhead: str, scale: int
) -> int:
    """Add up what is written. ``before``: of each init container, whether it is a sidecar too."""
    taken = _quantity(whole) if whole is not None else _of_containers(before, beside)
    return math.ceil((taken + _quantity(overhead)) * scale)


def _of_containers(before: tuple[tuple[bool, str], ...], beside: tuple[str, ...]) -> Fraction:
    sidecars, most = Fraction(0), Fraction(0)
    for is_sidecar, text in before:
        asked = _quantity(text)
        if is_sidecar:
            sidecars += asked
            asked = Fraction(0)
        most = max(most, sidecars + asked)
    return max(most, sidecars + sum(map(_quantity, beside), Fraction(0)))


def _quantity(text: str) -> Fraction:
    """Return an amount; 0 for text that is no quantity."""
    try:
        return parse_quantity(text)
    except InvalidText:
        return Fraction(0)


def amount(amounts: Mapping[str, str], name: str) -> Fraction:
    """Return one amount; 0 where there is none, and for text that is no quantity."""
    return _quantity(amounts.get(name, "0"))
