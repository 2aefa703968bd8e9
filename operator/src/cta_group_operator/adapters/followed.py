"""Every kind but CTAQuota: what is asked for, how it is read, and into which store it goes."""

from dataclasses import replace
from typing import Any, Final

from cta_group_core.names import LABEL_REQUESTS
from cta_group_operator.adapters import convert_own, wire, wire_cluster, wire_own
from cta_group_operator.adapters.convert import Converter, failure_event
from cta_group_operator.adapters.convert_cluster import LimitConverter, NodeConverter, autoscaler, namespace
from cta_group_operator.adapters.convert_controllers import ControllerConverter
from cta_group_operator.adapters.list_watch import Followed
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.resources import (
    AUTOSCALERS,
    CONTROLLERS,
    CTA_NODES,
    CTA_WORKLOADS,
    EVENTS,
    NAMESPACES,
    NODES,
    PODS,
    RESOURCE_QUOTAS,
)
from cta_group_operator.settings import WATCH_SECONDS

_OWN_PAGE_SIZE: Final = 100
"""A CTANode of eight full GPUs takes half a millisecond to read, and a page is read in one step of the loop."""


def what_to_follow(
    view: ClusterView, resource_name: str, watch_seconds: int = WATCH_SECONDS
) -> list[Followed[Any, Any]]:
    """Return what a replica follows. ``watch_seconds``: after so long the API server ends a watch."""
    converter = Converter(resource_name)
    makers = ControllerConverter(converter)
    controllers: list[Followed[Any, Any]] = [
        Followed(resource, wire.Controller, makers.of(resource), view.controllers[resource.kind])
        for resource in CONTROLLERS
    ]
    kinds: list[Followed[Any, Any]] = [
        Followed(PODS, wire.Pod, converter.pod, view.pods, {"labelSelector": f"{LABEL_REQUESTS}=true"}),
        Followed(NODES, wire_cluster.Node, NodeConverter(resource_name).node, view.nodes),
        Followed(NAMESPACES, wire_cluster.Namespace, namespace, view.namespaces),
        Followed(RESOURCE_QUOTAS, wire_cluster.ResourceQuota, LimitConverter(resource_name).limit, view.limits),
        Followed(EVENTS, wire_cluster.Event, failure_event, view.failures, {"fieldSelector": "reason=FailedCreate"}),
        Followed(AUTOSCALERS, wire_cluster.Autoscaler, autoscaler, view.autoscalers),
        Followed(CTA_NODES, wire_own.Told, convert_own.cta_node, view.cta_nodes, page_size=_OWN_PAGE_SIZE),
        Followed(CTA_WORKLOADS, wire_own.Told, convert_own.workload, view.workloads, page_size=_OWN_PAGE_SIZE),
        *controllers,
    ]
    return [replace(kind, watch_seconds=watch_seconds) for kind in kinds]
