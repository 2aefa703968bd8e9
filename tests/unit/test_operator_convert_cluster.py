"""The API server's JSON of nodes, namespaces, limits, autoscalers and events becomes the values that decisions read."""

from typing import Any

import msgspec

from cta_group_operator.adapters import wire_cluster
from cta_group_operator.adapters.convert import failure_event
from cta_group_operator.adapters.convert_cluster import LimitConverter, NodeConverter, autoscaler, namespace

Json = dict[str, Any]
RESOURCE = "nvidia.com/cta-group"
META = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}


def test_autoscaler() -> None:
    """An autoscaler is kept with what it scales and its ceiling; one without a spec says nothing."""
    spec = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}, "maxReplicas": 10}
    read = autoscaler(msgspec.convert({"metadata": META, "spec": spec}, wire_cluster.Autoscaler))
    assert read is not None
    assert (read.target_kind, read.target_name, read.max_replicas) == ("Deployment", "web", 10)
    assert autoscaler(msgspec.convert({"metadata": META}, wire_cluster.Autoscaler)) is None


def test_event() -> None:
    """An event is kept with the object it is about and its newest time."""
    body = {"metadata": META, "involvedObject": {"uid": "rs"}, "message": "m", "eventTime": "t1", "lastTimestamp": None}
    read = failure_event(msgspec.convert(body, wire_cluster.Event))
    assert read is not None
    assert (read.about, read.text, read.last) == ("rs", "m", "t1")
    assert failure_event(msgspec.convert({"metadata": META}, wire_cluster.Event)) is None


def test_node() -> None:
    """A node's room, taints and cordon arrive in the units of the rules."""
    body = {
        "metadata": {"name": "a", "resourceVersion": "1", "labels": {"x": "y"}},
        "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}], "unschedulable": True},
        "status": {"allocatable": {"cpu": "3500m", "memory": "2Gi", "pods": "110", RESOURCE: "1k"}},
    }
    facts = NodeConverter(RESOURCE).node(msgspec.convert(body, wire_cluster.Node)).facts
    assert (facts.cpu_milli, facts.memory_bytes, facts.pods, facts.groups) == (3500, 2 << 30, 110, 1000)
    assert (str(facts.taints[0]), facts.unschedulable) == ("k:NoSchedule", True)


def test_namespace_that_goes() -> None:
    """A namespace that is being deleted says so."""
    body = {"metadata": {"name": "n", "resourceVersion": "1", "deletionTimestamp": "t"}}
    assert namespace(msgspec.convert(body, wire_cluster.Namespace)).deleting


def a_limit(hard: Json, labels: Json | None = None, status: Json | None = None) -> Any:
    """Convert a ResourceQuota."""
    body = {"metadata": {**META, "labels": labels}, "spec": {"hard": hard}, "status": status}
    return LimitConverter(RESOURCE).limit(msgspec.convert(body, wire_cluster.ResourceQuota))


def test_limits() -> None:
    """Ours have an owner and numbers; foreign ones are kept when they speak of groups, enforced or not."""
    key = f"requests.{RESOURCE}"
    ours = a_limit({key: "1k"}, {"ctagroup.dev/quota": "team-a"}, {"hard": {key: "1k"}, "used": {key: "32"}})
    assert (ours.quota, ours.hard, ours.enforced, ours.used) == ("team-a", 1000, 1000, 32)
    new = a_limit({key: "64"}, {"ctagroup.dev/quota": "team-a"})
    assert (new.hard, new.enforced, new.used) == (64, None, None)
    assert a_limit({f"limits.{RESOURCE}": "8"}).ignored_keys == (f"limits.{RESOURCE}",)
    assert a_limit({"cpu": "8"}) is None
