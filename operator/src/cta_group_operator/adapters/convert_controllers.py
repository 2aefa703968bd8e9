"""From wire structs to the values of ``ports``: what makes pods. None: its pods do not ask for groups."""

from functools import partial
from typing import Final

import msgspec

from cta_group_core.annotated_groups import annotated_groups
from cta_group_core.errors import InvalidText
from cta_group_core.jobs import JobFacts
from cta_group_core.names import ANNOTATION_GROUPS, ANNOTATION_POKED
from cta_group_core.rollout import Rollout, rolling
from cta_group_operator.adapters import wire
from cta_group_operator.adapters.convert import Converter, owner_of, ref_of
from cta_group_operator.adapters.convert_budget import budget_of
from cta_group_operator.ports import ControllerView
from cta_group_operator.resources import DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Resource, is_followed

_TEMPLATE_MOST: Final = 256 * 1024
"""Longer templates are not kept; their server is not told of."""
_GROUP_SIZE: Final = "leaderworkerset.sigs.k8s.io/size"
"""Annotation of LeaderWorkerSet on the pods of its leaders: how many pods a group has."""
_TEMPLATES = msgspec.json.Decoder(wire.Template | None)


class ControllerConverter:
    """Converts objects of any kind that makes pods."""

    def __init__(self, pods: Converter) -> None:
        self._pods = pods

    def of(self, resource: Resource) -> partial[ControllerView | None]:
        """Return the conversion for one kind."""
        return partial(self.controller, resource)

    def controller(self, resource: Resource, found: wire.Controller) -> ControllerView | None:
        """Return an object whose pod template asks for groups."""
        spec = found.spec or wire.ControllerSpec()
        text = bytes(spec.template)
        template = (_TEMPLATES.decode(text) if text else None) or wire.Template()
        requests = self._requests(template)
        if not requests:
            return None
        status = found.status or wire.ControllerStatus()
        failures = [one for one in status.conditions or () if (one.type, one.status) == ("ReplicaFailure", "True")]
        owner = owner_of(found.metadata)
        return ControllerView(
            ref=ref_of(resource, found.metadata),
            resource_version=found.metadata.resource_version,
            requests=requests,
            owner=owner,
            wanted=_wanted(resource, spec, status),
            failure=failures[0].message or "" if failures else "",
            resting=_job(spec, status).why_none if resource == JOBS else "",
            poked=(found.metadata.annotations or {}).get(ANNOTATION_POKED, ""),
            budget=budget_of(found.metadata, template.metadata or wire.TemplateMetadata(), template.spec),
            rollout=_rollout(resource, spec),
            size=_group_size(template),
            template=b"" if is_followed(owner) or len(text) > _TEMPLATE_MOST else text,
        )

    def _requests(self, template: wire.Template) -> tuple[int, ...]:
        """Return what a pod asks for when it is admitted: by its containers, or else by the annotation."""
        asked = self._pods.requests(template.spec or wire.PodSpec())
        text = _annotation(template, ANNOTATION_GROUPS)
        if asked or not text:
            return asked
        try:
            return (annotated_groups(text),)
        except InvalidText:
            return ()


def _annotation(template: wire.Template, name: str) -> str:
    annotations = template.metadata.annotations if template.metadata else None
    return (annotations or {}).get(name, "")


def _group_size(template: wire.Template) -> int:
    text = _annotation(template, _GROUP_SIZE)
    return max(1, int(text)) if text.isascii() and text.isdecimal() else 1


def _rollout(resource: Resource, spec: wire.ControllerSpec) -> Rollout | None:
    """Return how pods are replaced; None where nothing replaces them, or a node's own agent does (DaemonSet)."""
    if resource not in (DEPLOYMENTS, STATEFUL_SETS):
        return None
    strategy = spec.strategy or wire.Strategy()
    if resource == STATEFUL_SETS or strategy.type == "Recreate":
        return Rollout()  # the old pod ends before the new one is made
    update = strategy.rolling_update or wire.RollingUpdate()
    return rolling(1 if spec.replicas is None else spec.replicas, update.max_surge, update.max_unavailable)


def _wanted(resource: Resource, spec: wire.ControllerSpec, status: wire.ControllerStatus) -> int | None:
    if resource in (DEPLOYMENTS, REPLICA_SETS, STATEFUL_SETS):
        return 1 if spec.replicas is None else spec.replicas
    if resource == JOBS:
        return _job(spec, status).wanted
    return status.desired_number_scheduled


def _job(spec: wire.ControllerSpec, status: wire.ControllerStatus) -> JobFacts:
    holding = (one for one in status.conditions or () if one.status == "True")
    return JobFacts(
        parallelism=spec.parallelism,
        completions=spec.completions,
        suspended=bool(spec.suspend),
        succeeded=status.succeeded or 0,
        active=status.active or 0,
        conditions=tuple((one.type, ": ".join(filter(None, (one.reason, one.message)))) for one in holding),
    )
