"""Whose a pod is, through owners of any kind, and what its owner's autoscaler and template add to the explanation."""

import json
from dataclasses import replace

import pytest

from cta_group_core.explain_growth import Ceiling
from cta_group_core.ids import NodeName
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.rollout import rolling
from cta_group_core.units import GpuUnits
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.workload import ServerStatus
from cta_group_operator.admission.settings import PodRules
from cta_group_operator.admission.template import TemplateReader
from cta_group_operator.ports import AutoscalerView, ObjectRef
from cta_group_operator.reconcile.denied import Denials
from cta_group_operator.reconcile.view import ClusterView
from cta_group_operator.reconcile.workload_facts import server_of, workload_facts
from operator_world import RESOURCE, SPACE, FakeServers, a_controller, a_limit, a_node, a_pod, a_quota, a_view, ref

LWS = ref("LeaderWorkerSet", "lws", api_version="leaderworkerset.x-k8s.io/v1")
DEPLOYMENT = ref("Deployment", "web")


def a_group_world() -> ClusterView:
    """Return a LeaderWorkerSet of two groups of three, of which the first group is there."""
    view = a_view()
    leaders = a_controller("StatefulSet", "lws", owner=LWS, wanted=2, size=3)
    view.controllers["StatefulSet"].put(leaders)
    leader = a_pod("lws-0", owner=leaders.ref)
    view.pods.put(leader)
    workers = a_controller("StatefulSet", "lws-0", owner=leader.ref, wanted=2)
    view.controllers["StatefulSet"].put(workers)
    for name in ("lws-0-1", "lws-0-2"):
        view.pods.put(a_pod(name, owner=workers.ref))
    return view


def test_a_group_belongs_to_its_leader_worker_set() -> None:
    """A worker's StatefulSet is owned by the leader pod; the chain goes on through it, and the group is wanted."""
    view = a_group_world()
    worker = view.pods.get("lws-0-2", SPACE)
    assert worker is not None
    assert view.top_owner(worker.ref, worker.owner) == LWS
    facts = workload_facts(LWS, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert (facts.wanted, len(facts.pods), facts.missing) == (6, 3, 3)


def test_links_of_a_chain_are_not_explained_themselves() -> None:
    """A leader pod that was marked before its owner was known is no workload of its own."""
    view = a_group_world()
    denials = Denials(view, RESOURCE)
    for kind, name in (("StatefulSet", "lws"), ("StatefulSet", "lws-0")):
        assert workload_facts(ref(kind, name), view, denials, {}) is None
    assert workload_facts(ref("Pod", "lws-0", api_version="v1"), view, denials, {}) is None


def test_workers_whose_leader_asks_for_nothing() -> None:
    """A leader without groups is not followed: its pod is the end of the chain, and its workers are counted."""
    view = a_view()
    leader = ref("Pod", "lws-0", api_version="v1")
    workers = a_controller("StatefulSet", "lws-0", owner=leader, wanted=2)
    view.controllers["StatefulSet"].put(workers)
    view.pods.put(a_pod("lws-0-1", owner=workers.ref))
    facts = workload_facts(leader, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert (facts.wanted, facts.missing) == (2, 1)


def test_owners_in_a_ring_end() -> None:
    """Two objects that name each other as controllers, made by hand, are walked once."""
    view = a_view()
    first, second = ref("StatefulSet", "a"), ref("StatefulSet", "b")
    view.controllers["StatefulSet"].put(a_controller("StatefulSet", "a", owner=second))
    view.controllers["StatefulSet"].put(a_controller("StatefulSet", "b", owner=first))
    assert view.top_owner(first, second) in (first, second)
    assert len(view.controllers_under(first)) == 2


def an_autoscaler(name: str, kind: str, target: str, most: int) -> AutoscalerView:
    """Return an autoscaler."""
    return AutoscalerView(ref("HorizontalPodAutoscaler", name), "1", kind, target, most)


def ceiling_of(view: ClusterView, top: ObjectRef) -> Ceiling | None:
    """Return the ceiling in the facts of a workload."""
    facts = workload_facts(top, view, Denials(view, RESOURCE), {})
    assert facts is not None
    return facts.ceiling


def test_the_ceiling_of_an_autoscaler() -> None:
    """It is that of the top owner, or of what the top owner makes; the highest counts, and it goes with its object."""
    view = a_view()
    service = ref("InferenceService", "llm", api_version="serving.kserve.io/v1beta1")
    view.controllers["Deployment"].put(a_controller("Deployment", "web", owner=service))
    view.autoscalers.put(an_autoscaler("low", "Deployment", "web", 4))
    view.autoscalers.put(an_autoscaler("high", "Deployment", "web", 10))
    view.autoscalers.put(an_autoscaler("other", "StatefulSet", "web", 99))
    assert ceiling_of(view, service) == Ceiling(10, "HorizontalPodAutoscaler high")
    view.autoscalers.remove((SPACE, "high"))
    assert ceiling_of(view, service) == Ceiling(4, "HorizontalPodAutoscaler low")
    view.autoscalers.remove((SPACE, "low"))
    assert ceiling_of(view, service) is None


def test_a_ceiling_in_groups_of_pods() -> None:
    """A LeaderWorkerSet is scaled by whole groups."""
    view = a_group_world()
    view.autoscalers.put(an_autoscaler("hpa", "LeaderWorkerSet", "lws", 5))
    assert ceiling_of(view, LWS) == Ceiling(15, "HorizontalPodAutoscaler hpa")


def test_a_rollout_against_quota_and_room() -> None:
    """What RolloutSafe needs is known: the strategy, the quota with its cohort, and the largest room of any node."""
    view = a_view()
    view.quotas.put(a_quota("q", 64, SPACE))
    view.limits.put(a_limit(SPACE, "q", 64, used=32))
    a_node(view, "n", 16, 24)
    view.controllers["Deployment"].put(a_controller("Deployment", "web", rollout=rolling(1, None, None)))
    facts = workload_facts(DEPLOYMENT, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert facts.quota is not None
    assert (facts.rollout, facts.quota.ever) == (rolling(1, None, None), 64)
    assert facts.largest_fit == max(node.status.largest_fit for node in view.cta_nodes)
    assert view.largest_fit(256) is None  # of several GPUs nobody says anything here


def test_the_largest_room_follows_the_nodes() -> None:
    """Nodes that come, change and go are counted; a CTANode without its Node is not."""
    view = a_view()
    assert view.largest_fit(32) is None
    a_node(view, "small", 16)
    first = next(iter(view.cta_nodes))
    view.cta_nodes.put(replace(first, resource_version="2", status=first.status.with_totals()))
    assert view.largest_fit(32) == 16
    a_node(view, "large", 64)
    (large,) = (one for one in view.cta_nodes if one.name == "large")
    view.cta_nodes.put(replace(large, resource_version="2", status=large.status.with_totals()))
    assert view.largest_fit(32) == 64
    view.nodes.remove(("", "large"))
    assert view.largest_fit(32) == 16
    view.cta_nodes.remove(("", "small"))
    assert view.largest_fit(32) is None


def test_the_ceiling_of_a_quota_in_a_cohort() -> None:
    """It is what the cohort owns, as far as the quota may borrow."""
    view = a_view()
    for name, groups in (("q", 64), ("other", 100)):
        quota = a_quota(name, groups, *([SPACE] if name == "q" else []))
        view.quotas.put(replace(quota, spec=quota.spec.model_copy(update={"cohort": "c"})))
    view.limits.put(a_limit(SPACE, "q", 64, used=32))
    view.controllers["Deployment"].put(a_controller("Deployment", "web"))
    facts = workload_facts(DEPLOYMENT, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert facts.quota is not None
    assert facts.quota.ever == 164


FOUND = ServerStatus(engine="vLLM", container="vllm", arguments_form="list")
FITS = Condition(type="ArgsAligned", status=ConditionStatus.TRUE, reason="Fit", message="they fit")


def test_the_server_of_a_workload() -> None:
    """It is read from the template; where none is followed, what admission wrote on a pod tells."""
    view = a_view()
    view.controllers["Deployment"].put(a_controller("Deployment", "web", template=b"{}"))
    assert server_of(DEPLOYMENT, view, FakeServers((FOUND, FITS))) == (FOUND, FITS)
    assert server_of(DEPLOYMENT, view, FakeServers()) == (None, None)
    bare = a_pod("bare", advice="add --x=1")
    view.pods.put(bare)
    found, condition = server_of(bare.ref, view, FakeServers((FOUND, FITS)))
    assert found is None
    assert condition is not None
    assert (condition.reason, condition.message) == ("ArgsNotPatchable", "add --x=1")


H100 = GpuKind("NVIDIA H100 80GB HBM3", 81079, 1024, GpuUnits(132, 128, 8, 8), limits_memory=True)


class OneKind:
    """A cluster of H100."""

    def kinds(self, node_selector: object) -> list[GpuKind]:
        """Return it, wherever the pod may go."""
        del node_selector
        return [H100]


@pytest.mark.parametrize("by_annotation", [False, True])
def test_a_template_is_read_as_admission_reads_its_pods(by_annotation: bool) -> None:  # noqa: FBT001 - a parameter
    """Requests by resource and by annotation, and the annotation about alignment, mean the same as for a pod."""
    container = {"name": "vllm", "image": "vllm/vllm-openai:v0.27.1", "args": ["--model=Qwen/Qwen3-4B"]}
    annotations = {"ctagroup.dev/align": "report"}
    if by_annotation:
        annotations["ctagroup.dev/groups"] = "32"
    else:
        container["resources"] = {"limits": {RESOURCE: "32"}}  # type: ignore[assignment]
    template = {"metadata": {"annotations": annotations}, "spec": {"containers": [container]}}
    reader = TemplateReader(PodRules(RESOURCE), OneKind())
    read = reader.read(json.dumps(template).encode())
    assert read is not None
    server, condition = read
    assert (server.version, server.memory[0].product) == ("0.27.1", H100.product)
    assert condition.reason == "ReportedOnly"
    assert reader.read(b"") is None
    assert reader.read(b'{"metadata": 1}') is None
    container["image"] = container["name"] = "nginx"
    container["args"] = []
    assert reader.read(json.dumps(template).encode()) is None


def test_where_a_pod_runs_says_nothing_about_its_owner() -> None:
    """A pod bound to a node is found through its controller as before."""
    view = a_view()
    view.controllers["Deployment"].put(a_controller("Deployment", "web"))
    pod = a_pod("p", owner=DEPLOYMENT, gates=(), node=NodeName("n"), phase="Running")
    view.pods.put(pod)
    assert view.top_owner(pod.ref, pod.owner) == DEPLOYMENT
    assert view.owner_of(pod.ref) == DEPLOYMENT
    view.pods.remove((SPACE, "p"))
    assert view.owner_of(pod.ref) is None


def test_a_cron_job_tells_what_its_newest_job_says() -> None:
    """While one of its Jobs runs pods nothing is told of those before; when none does, the newest failure is."""
    view, top = a_view(), ref("CronJob", "nightly", api_version="batch/v1")
    for number, why in (("1", "the Job has failed (old)"), ("2", "the Job has failed (new)")):
        made = a_controller("Job", f"nightly-{number}", owner=top, wanted=0, resting=why)
        view.controllers["Job"].put(made)
    facts = workload_facts(top, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert facts.resting == "nightly-2: the Job has failed (new)"
    view.controllers["Job"].put(a_controller("Job", "nightly-3", owner=top))
    facts = workload_facts(top, view, Denials(view, RESOURCE), {})
    assert facts is not None
    assert facts.resting == ""
