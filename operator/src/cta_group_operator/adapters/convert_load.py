"""What a pod takes of a node's cpu and memory, as the scheduler counts it.

Source: Kubernetes 1.37, ``PodRequests`` in the resource package of component-helpers. Containers and sidecars run
together; an init container runs beside the sidecars before it, and the largest of these moments counts. What is said
for the pod as a whole takes the place of that, and the overhead of its runtime class comes on top.
"""

import math
from collections.abc import Mapping
from fractions import Fraction

from cta_group_core.errors import InvalidText
from cta_group_core.quantities import parse_quantity
from cta_group_operator.adapters import wire


def load_of(spec: wire.PodSpec, name: str, scale: int = 1) -> int:
    """Return how much of one resource a pod takes, times ``scale``, rounded up."""
    whole = (spec.resources.requests if spec.resources else None) or {}
    taken = amount(whole, name) if name in whole else _of_containers(spec, name)
    return math.ceil((taken + amount(spec.overhead or {}, name)) * scale)


def _of_containers(spec: wire.PodSpec, name: str) -> Fraction:
    sidecars, most = Fraction(0), Fraction(0)
    for one in spec.init_containers or ():
        asked = _of(one, name)
        if one.restart_policy == "Always":
            sidecars += asked
            asked = Fraction(0)
        most = max(most, sidecars + asked)
    return max(most, sidecars + sum((_of(one, name) for one in spec.containers or ()), Fraction(0)))


def _of(container: wire.Container, name: str) -> Fraction:
    return amount((container.resources.requests if container.resources else None) or {}, name)


def amount(amounts: Mapping[str, str], name: str) -> Fraction:
    """Return one amount; 0 where there is none, and for text that is no quantity."""
    try:
        return parse_quantity(amounts.get(name, "0"))
    except InvalidText:
        return Fraction(0)
