"""What the annotation ``ctagroup.dev/alignment`` of a pod claims, held against the arguments that the pod really has.

Whoever may change a pod may write its annotations, so a claim is believed only where the arguments say the same.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cta_group_core.vllm.arguments import Arguments
from cta_group_core.vllm.detect import ContainerFacts, detect


@dataclass(frozen=True, slots=True)
class Claim:
    """One change of an argument, as :meth:`~cta_group_core.vllm.align.Edit.as_json` writes it."""

    flag: str
    before: str | None
    after: str
    why: str


def claims_of(text: str) -> tuple[Claim, ...]:
    """Return the changes that an annotation claims; none where it is not of the form that admission writes."""
    try:
        read = [Claim(one["flag"], one["from"], one["to"], one["why"]) for one in json.loads(text or "[]")]
    except (ValueError, TypeError, KeyError, RecursionError):
        return ()
    return tuple(read) if all(map(_is_well_formed, read)) else ()


def holds(claims: Sequence[Claim], arguments: Arguments) -> bool:
    """Tell whether there are claims and the arguments say now what each of them says."""
    said = {one.flag.value: one.text for one in arguments.occurrences}
    return bool(claims) and all(said.get(one.flag) == one.after for one in claims)


def believed(text: str, containers: Iterable[ContainerFacts]) -> tuple[Claim, ...]:
    """Return the changes that an annotation claims where one of the pod's containers has them all, else none."""
    claims = claims_of(text)
    if not claims:
        return ()
    found = (detect([one], {}, named=one.name).found for one in containers)
    return claims if any(holds(claims, one.arguments) for one in found if one is not None) else ()


def _is_well_formed(claim: Claim) -> bool:
    texts = (claim.flag, claim.after, claim.why, claim.before or "")
    return all(isinstance(one, str) for one in texts)
