"""The API server's JSON of pods and of what makes them becomes the values that decisions read."""

from typing import Any

import msgspec
import pytest

from cta_group_core.rollout import Rollout
from cta_group_core.selectors import Operator
from cta_group_operator.adapters import wire
from cta_group_operator.adapters.convert import Converter
from cta_group_operator.adapters.convert_controllers import ControllerConverter
from cta_group_operator.ports import ControllerView
from cta_group_operator.resources import DAEMON_SETS, DEPLOYMENTS, JOBS, REPLICA_SETS, STATEFUL_SETS, Resource

Json = dict[str, Any]
RESOURCE = "nvidia.com/cta-group"
READ = Converter(RESOURCE)
MAKERS = ControllerConverter(READ)
META = {"name": "p", "namespace": "n", "uid": "u", "resourceVersion": "7"}
ASKING = {"name": "c", "resources": {"limits": {RESOURCE: "32"}, "requests": {RESOURCE: "32", "cpu": "1500m"}}}


def a_pod(status: Json | None = None, **spec: Any) -> Any:
    """Decode a pod as the watch does, and convert it."""
    body = {"metadata": META, "spec": {"containers": [ASKING], **spec}, "status": status}
    return READ.pod(msgspec.json.decode(msgspec.json.encode(body), type=wire.Pod))


def a_controller(resource: Resource, body: Json) -> ControllerView | None:
    """Decode what makes pods as the watch does, and convert it."""
    return MAKERS.controller(resource, msgspec.json.decode(msgspec.json.encode(body), type=wire.Controller))


def running(**container: Any) -> Json:
    """Return the status of a pod that is called Running, with one container."""
    return {"phase": "Running", "containerStatuses": [{"name": "c", **container}]}


LAST = "container c ended with exit code 1; its log says why: kubectl logs"
ENDED = "container c ended with exit code 1; its log says why: kubectl logs --previous"


def test_requests_of_containers() -> None:
    """Each container that asks is one request, sidecars too; limits count where requests are not said."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {RESOURCE: "8"}}}
    plain = {"name": "plain"}
    pod = a_pod(containers=[ASKING, plain, ASKING], initContainers=[sidecar, ASKING])
    assert pod.requests == (8, 32, 32)
    assert pod.groups == 72
    assert pod.terms.cpu_milli == 3000


def test_an_init_container_that_asks_for_as_much() -> None:
    """Where a policy lets it: the containers after it get its groups, so it is what counts, beside the sidecars."""
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"limits": {RESOURCE: "8"}}}
    large = {"name": "l", "resources": {"limits": {RESOURCE: "96"}}}
    assert a_pod(containers=[ASKING], initContainers=[large, ASKING]).requests == (96,)
    assert a_pod(containers=[ASKING, ASKING], initContainers=[sidecar, large]).requests == (8, 96)
    assert a_pod(containers=[{"name": "plain"}], initContainers=[large]).requests == (96,)
    assert a_pod(containers=[ASKING, large], initContainers=[large]).requests == (32, 96)


@pytest.mark.parametrize(("text", "needs"), [("4,2,1", True), ("1", False), ("what", False), ("", False)])
def test_clusters_that_a_pod_needs(text: str, needs: bool) -> None:  # noqa: FBT001
    """By its annotation; a text that nobody understands, of a pod that came past admission, decides nothing."""
    body = {"metadata": {**META, "annotations": {"ctagroup.dev/shape": text}}, "spec": {"containers": [ASKING]}}
    pod = READ.pod(msgspec.convert(body, wire.Pod))
    assert pod is not None
    assert pod.terms.needs_clusters is needs


def test_a_pod_that_asks_nothing_is_dropped() -> None:
    """Pods without a request, or with one that is no whole number, are not kept."""
    assert a_pod(containers=[{"name": "plain"}]) is None
    assert a_pod(containers=[{"name": "odd", "resources": {"limits": {RESOURCE: "500m"}}}]) is None


def test_nulls_are_absent() -> None:
    """Objects with nulls where lists belong, as bookmarks have them, are read like empty ones."""
    empty = {"metadata": {"resourceVersion": "9"}, "spec": {"containers": None}, "status": None}
    assert READ.pod(msgspec.convert(empty, wire.Pod)) is None
    controller = {
        "metadata": META,
        "spec": {"template": {"spec": {"containers": None}}},
        "status": {"conditions": None},
    }
    assert a_controller(REPLICA_SETS, controller) is None
    assert a_controller(REPLICA_SETS, {"metadata": META, "spec": {"template": None}}) is None
    assert a_controller(REPLICA_SETS, {"metadata": META}) is None


def test_terms_of_a_pod() -> None:
    """Node selector, affinity with fields, tolerations and gates arrive as the rules use them."""
    field = {"key": "metadata.name", "operator": "In", "values": ["a"]}
    zone = {"key": "zone", "operator": "Exists"}
    required = {"nodeSelectorTerms": [{"matchFields": [field], "matchExpressions": [zone]}]}
    pod = a_pod(
        nodeSelector={"pool": "gpu"},
        affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        tolerations=[{"operator": "Exists"}, {"key": "gpu", "value": "x", "effect": "NoSchedule"}],
        schedulingGates=[{"name": "g"}],
        priority=10,
    )
    (term,) = pod.terms.node_terms
    assert (term.fields[0].values, term.expressions[0].operator) == (("a",), Operator.EXISTS)
    assert [one.operator for one in pod.terms.tolerations] == ["Exists", "Equal"]
    assert (pod.terms.node_selector, pod.gates, pod.priority) == ((("pool", "gpu"),), ("g",), 10)


def test_an_unknown_operator_cannot_be_read() -> None:
    """A requirement of a kind that is not known is an error rather than one that always holds."""
    term = {"matchExpressions": [{"key": "k", "operator": "Resembles"}]}
    with pytest.raises(ValueError, match="Resembles"):
        a_pod(
            affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
        )


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ({"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no"}, "UnexpectedAdmissionError: no"),
        ({"phase": "Failed", "containerStatuses": [{"name": "c", "state": {"terminated": {"exitCode": 1}}}]}, LAST),
        (
            {"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]},
            "ImagePullBackOff",
        ),
        ({"containerStatuses": [{"name": "c", "state": {"waiting": {"reason": "ContainerCreating"}}}]}, ""),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}]},
            "0/1",
        ),
        (
            {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": "g"}]},
            "",
        ),
        ({"phase": "Running"}, ""),
        (running(state={"waiting": {"reason": "CrashLoopBackOff"}}, lastState={"terminated": {"exitCode": 1}}), ENDED),
        (running(state={"terminated": {"exitCode": 1}}), ENDED),
        (running(state={"running": {}}, lastState={"terminated": {"exitCode": 1}}), ENDED),
        (running(ready=True, state={"running": {}}, lastState={"terminated": {"exitCode": 1}}), ""),
        (running(ready=None, state=None, lastState=None), ""),
    ],
)
def test_words_about_a_pod(status: Json, words: str) -> None:
    """What kubelet or the scheduler says about a pod that does not run is kept; what always passes is not."""
    assert a_pod(status).words == words


@pytest.mark.parametrize(
    ("resource", "spec", "status", "wanted"),
    [
        (DEPLOYMENTS, {"replicas": 3}, {}, 3),
        (DEPLOYMENTS, {}, {}, 1),
        (JOBS, {"parallelism": 4}, {}, 4),
        (JOBS, {"suspend": True}, {}, 0),
        (JOBS, {"parallelism": 4}, {"succeeded": 1, "active": 2}, 2),
        (JOBS, {"parallelism": 4}, {"conditions": [{"type": "Failed", "status": "True"}]}, 0),
        (DAEMON_SETS, {}, {"desiredNumberScheduled": 5}, 5),
    ],
)
def test_wanted_pods(resource: Any, spec: Json, status: Json, wanted: int) -> None:
    """Each kind says in its own way how many pods it wants."""
    body = {"metadata": META, "spec": {**spec, "template": {"spec": {"containers": [ASKING]}}}, "status": status}
    read = a_controller(resource, body)
    assert read is not None
    assert read.wanted == wanted


def test_controller_with_a_failure() -> None:
    """Owner, failure and what was written when it was woken are kept."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": "d", "controller": True}
    other = {"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}
    body = {
        "metadata": {**META, "ownerReferences": [other, owner], "annotations": {"ctagroup.dev/poked": "9"}},
        "spec": {"template": {"spec": {"containers": [ASKING]}}},
        "status": {"conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota"}]},
    }
    read = a_controller(REPLICA_SETS, body)
    assert read is not None
    assert read.owner is not None
    assert (read.owner.uid, read.failure, read.poked) == ("d", "exceeded quota", "9")
    assert read.template == b""  # its Deployment has the same one


def a_template(annotations: Json | None = None, *containers: Json, **spec: Any) -> Json:
    """Return a controller with a pod template."""
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": list(containers or (ASKING,))}}
    return {"metadata": META, "spec": {**spec, "template": template}}


def test_a_template_that_asks_by_its_annotation() -> None:
    """Its pods ask when they are admitted, so what makes them is followed; text that asks for nothing does not."""
    read = a_controller(DEPLOYMENTS, a_template({"ctagroup.dev/groups": "32"}, {"name": "c"}))
    assert read is not None
    assert (read.requests, b"ctagroup.dev/groups" in read.template) == ((32,), True)
    assert a_controller(DEPLOYMENTS, a_template({"ctagroup.dev/groups": "many"}, {"name": "c"})) is None


def test_the_size_of_a_group() -> None:
    """LeaderWorkerSet tells in an annotation how many pods each leader stands for."""
    read = a_controller(STATEFUL_SETS, a_template({"leaderworkerset.sigs.k8s.io/size": "4"}))
    assert read is not None
    assert read.size == 4
    odd = a_controller(STATEFUL_SETS, a_template({"leaderworkerset.sigs.k8s.io/size": "some"}))
    assert odd is not None
    assert odd.size == 1


@pytest.mark.parametrize(
    ("resource", "spec", "rollout"),
    [
        (DEPLOYMENTS, {}, Rollout(1, 0, "25%")),
        (DEPLOYMENTS, {"replicas": 8}, Rollout(2, 2, "25%")),
        (DEPLOYMENTS, {"strategy": {"type": "Recreate"}}, Rollout()),
        (DEPLOYMENTS, {"strategy": {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": "0%"}}}, Rollout(2, 0, "2")),
        (STATEFUL_SETS, {"replicas": 8}, Rollout()),
        (REPLICA_SETS, {}, None),
        (DAEMON_SETS, {}, None),
        (JOBS, {}, None),
    ],
)
def test_how_pods_are_replaced(resource: Resource, spec: Json, rollout: Rollout | None) -> None:
    """A Deployment makes new pods beside the old ones, as its strategy says, unless it is told to end those first."""
    read = a_controller(resource, a_template(**spec))
    assert read is not None
    assert read.rollout == rollout


def test_what_admission_wrote_on_a_pod() -> None:
    """It is kept of pods whose template nobody reads, and of no others."""
    changed = '[{"flag": "--max-num-seqs", "from": null, "to": "64", "why": "fits"}]'
    told = {"ctagroup.dev/alignment": changed, "ctagroup.dev/alignment-advice": "add this"}
    server: Json = {**ASKING, "image": "vllm/vllm-openai", "args": ["m", "--max-num-seqs=64"]}
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "d", "controller": True}
    meta: Json = {**META, "annotations": told}
    body = {"metadata": meta, "spec": {"containers": [server]}}
    alone = READ.read_pod(body)
    assert alone is not None
    assert (alone.alignment, alone.advice) == (changed, "add this")
    server["args"] = ["m", "--max-num-seqs=512"]
    forged = READ.read_pod(body)
    assert forged is not None
    assert forged.alignment == ""
    meta["ownerReferences"] = [owner]
    owned = READ.read_pod(body)
    assert owned is not None
    assert (owned.alignment, owned.advice) == ("", "")
