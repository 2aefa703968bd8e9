"""The API server's words when a ResourceQuota keeps a pod from being created, as numbers.

A Deployment is always accepted; its ReplicaSet's controller is refused, and the text of that refusal is all there is to
read (condition ReplicaFailure of the ReplicaSet, event FailedCreate of any controller). Measured on Kubernetes 1.37::

    pods "web-abc" is forbidden: exceeded quota: cta-group, requested: requests.nvidia.com/cta-group=32,
    used: requests.nvidia.com/cta-group=240, limited: requests.nvidia.com/cta-group=256
"""

import re
from dataclasses import dataclass

from cta_group_core.errors import InvalidText
from cta_group_core.quantities import parse_count
from cta_group_core.quota import quota_key

_EXCEEDED = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_UNKNOWN = re.compile(r"status unknown for quota: (\S+), resources: (\S+)")
_POLICY = re.compile(r"ValidatingAdmissionPolicy '([^']+)' with binding '[^']+' denied request: (.+)", re.DOTALL)
_WEBHOOK = re.compile(r'admission webhook "([^"]+)" denied the request: (.+)', re.DOTALL)
_BOUND = re.compile(r"CTAQuota (\S+) allows \d+ in one pod")
"""The words of the policy ``per-pod`` of the chart."""
_WRAPPINGS = re.compile(r"^(?:\(combined from similar events\): )?(?:Error creating: )?")


@dataclass(frozen=True, slots=True)
class Denial:
    """One refusal by a ResourceQuota. Numbers in groups, of the moment of the refusal."""

    quota_object: str
    """Name of the ResourceQuota."""
    needs: int = 0
    used: int = 0
    limit: int = 0
    other_resources: tuple[str, ...] = ()
    """Other resources that the same refusal names."""
    about_groups: bool = True
    """False when only other resources were exceeded."""
    not_counted_yet: bool = False
    """The quota is so new that the API server has not counted what is used; it refuses until it has."""

    @property
    def short(self) -> int:
        """Groups that were missing."""
        return max(0, self.used + self.needs - self.limit)


def parse_denial(text: str, resource_name: str) -> Denial | None:
    """Read a refusal; None when the text is about something else than a quota."""
    if exceeded := _EXCEEDED.search(text):
        return _exceeded(*exceeded.groups(), key=quota_key(resource_name))
    if unknown := _UNKNOWN.search(text):
        quota, resources = unknown.groups()
        return Denial(quota, about_groups=quota_key(resource_name) in resources.split(","), not_counted_yet=True)
    return None


def bounding_quota(text: str) -> str | None:
    """Return the CTAQuota whose ``spec.perPod.max`` refused a pod; None when the text is about something else."""
    bound = _BOUND.search(text)
    return bound[1] if bound else None


def refusal_words(text: str) -> str:
    """Return a refusal without what is the same in all of them: the own words and the name of what refused."""
    for what, form in (("policy", _POLICY), ("webhook", _WEBHOOK)):
        if refused := form.search(text):
            name, words = refused.groups()
            return f"{words} ({what} {name})"
    return _WRAPPINGS.sub("", text)


def _exceeded(quota: str, requested: str, used: str, limited: str, *, key: str) -> Denial | None:
    asked, held, most = (_amounts(part) for part in (requested, used, limited))
    others = tuple(sorted(resource for resource in asked if resource != key))
    try:
        needs, using, limit = (parse_count(part.get(key, "0")) for part in (asked, held, most))
    except InvalidText:
        return None
    return Denial(quota, needs, using, limit, other_resources=others, about_groups=key in asked)


def _amounts(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(","))
    return {name: amount for name, _, amount in pairs}
