"""``kubectl cta`` as a person runs it, against a real API server with objects as the plugin and the operator write."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
import yaml

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.nodes import Allocation, Condition, ConditionStatus, GpuStatus, NodeStatus
from cta_group_core.workload import WorkloadOwner, WorkloadStatus, object_name
from kubectl import Kubectl
from terminal_user import Person

CRDS = Path(__file__).parents[2] / "crds"
OURS = "/apis/ctagroup.dev/v1alpha1"
RESOURCE = "nvidia.com/cta-group"


@pytest.fixture(scope="module", autouse=True)
def kinds(control_plane: ControlPlane) -> None:
    """Define the project's kinds and wait until the API server serves them."""
    admin = Kubectl.admin(control_plane)
    definitions = [yaml.safe_load(path.read_text()) for path in sorted(CRDS.glob("*.yaml"))]
    admin.apply(*definitions)
    for one in definitions:
        plural = one["spec"]["names"]["plural"]
        wait_for(partial(is_served, control_plane.api, f"{OURS}/{plural}"), f"the kind {plural}")


def is_served(api: ApiClient, path: str) -> bool:
    """Tell whether the list at the path can be read; a new kind is refused for a moment."""
    try:
        api.get(path)
    except ApiError:
        return False
    return True


@pytest.fixture
def person(control_plane: ControlPlane, namespace: str) -> Person:
    """Return someone who works in a namespace of their own."""
    return Person(control_plane, namespace)


@pytest.fixture
def node(api: ApiClient, namespace: str) -> Iterator[str]:
    """Publish a node with one H200 of which 32 groups are held, as the plugin does; return its name."""
    name = f"gpu-{namespace}"
    gpu = GpuStatus(
        uuid="GPU-00000000-0000-4000-8000-000000000000",
        index=0,
        product="NVIDIA H200",
        compute_capability="9.0",
        sm_count=132,
        capacity=128,
        minimum=8,
        step=8,
        free=96,
        largest_fit=96,
        allocations=(Allocation(namespace=namespace, pod="vllm-0", container="vllm", groups=32, memory_mib=35532),),
    )
    status = NodeStatus(resource_name=RESOURCE, simulated=True, gpus=(gpu,)).with_totals()
    publish(api, f"{OURS}/ctanodes", "CTANode", {"metadata": {"name": name}}, status.as_api())
    yield name
    api.delete(f"{OURS}/ctanodes/{name}")


def publish(api: ApiClient, path: str, kind: str, content: Json, status: Json) -> None:
    """Make an object of ours and give it a status, in two steps as the API wants it."""
    made = api.create(path, {"apiVersion": "ctagroup.dev/v1alpha1", "kind": kind, **content})
    api.patch(f"{path}/{made['metadata']['name']}/status", {"status": status})


def deployment(name: str, replicas: int = 1) -> Json:
    """Return a Deployment whose pods ask for 32 groups each."""
    labels = {"app": name}
    container = {"name": "vllm", "image": "localhost/none:1", "resources": {"limits": {RESOURCE: "32"}}}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template}
    return {"metadata": {"name": name}, "spec": spec}


def limit(api: ApiClient, namespace: str, groups: int) -> None:
    """Limit a namespace as the operator does, and wait until the API server has counted what is used."""
    quotas = f"/api/v1/namespaces/{namespace}/resourcequotas"
    api.create(quotas, {"metadata": {"name": "cta-group"}, "spec": {"hard": {f"requests.{RESOURCE}": str(groups)}}})
    wait_for(lambda: api.get(f"{quotas}/cta-group").get("status", {}).get("used"), "the quota is counted")


def test_top_shows_gpus_and_holders(person: Person, node: str) -> None:
    """The node is shown with what is free, what fits, who holds the rest, and that it is simulated."""
    ended = person.types("kubectl-cta", "top", node)
    assert (ended.returncode, ended.stderr) == (0, "")
    lines = [" ".join(line.split()) for line in ended.stdout.splitlines()]
    assert f"{node} (simulated) 0 NVIDIA H200 96 128 96 Healthy" in lines
    assert f"{node} 0 {person.namespace} vllm-0 vllm 32 35532" in lines


def test_top_gives_the_published_facts(person: Person, node: str) -> None:
    """The JSON form is what the API server stores, by the names of the API."""
    status, facts = person.asks("top", node)
    assert status == 0
    (found,) = facts["nodes"]
    assert (found["name"], found["simulated"], found["free"], found["largestFit"]) == (node, True, 96, 96)
    assert found["gpus"][0]["allocations"][0]["memoryMiB"] == 35532


def test_it_is_a_plugin_of_kubectl(person: Person, node: str) -> None:
    """Kubectl finds the program and hands it the words."""
    ended = person.types("kubectl", "cta", "top", node)
    assert ended.returncode == 0
    assert node in ended.stdout


def test_unknown_node_is_bad_input(person: Person, node: str) -> None:
    """A node that does not exist ends with 2 and a sentence that names those that do."""
    ended = person.types("kubectl-cta", "top", "nowhere")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert node in ended.stderr


def test_explain_tells_what_the_operator_wrote(person: Person, api: ApiClient) -> None:
    """The sentence of the CTAWorkload is the answer, and something that is in the way ends with 1."""
    message = "the pod cannot be created: needs 32, quota 256, used 240, short 16 (CTAQuota team-a)"
    condition = Condition(
        type="Admissible",
        status=ConditionStatus.FALSE,
        reason="QuotaExceeded",
        last_transition_time="2026-11-29T20:00:00Z",
    )
    owner = WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web")
    status = WorkloadStatus(owner=owner, message=message, groups_per_pod=32, replicas_wanted=1, conditions=(condition,))
    path = f"{OURS}/namespaces/{person.namespace}/ctaworkloads"
    publish(api, path, "CTAWorkload", {"metadata": {"name": object_name("Deployment", "web")}}, status.as_api())
    ended = person.types("kubectl", "cta", "explain", "deploy/web", "-n", person.namespace)
    assert (ended.returncode, ended.stderr) == (1, "")
    assert ended.stdout.splitlines()[0] == f"deployment/web: {message}"
    code, facts = person.asks("explain", "deployment/web", "-n", person.namespace)
    assert (code, facts["blocked"], facts["source"]) == (1, True, "the operator")


def test_explain_finds_a_quota_refusal_without_the_operator(person: Person, api: ApiClient) -> None:
    """Where no operator runs, the refusal that the real controllers leave in a ReplicaSet is found and counted."""
    namespace = person.namespace
    limit(api, namespace, groups=48)
    apps = f"/apis/apps/v1/namespaces/{namespace}"
    api.create(f"{apps}/deployments", deployment("web", replicas=2))

    def refused() -> Json | None:
        sets = api.items(f"{apps}/replicasets")
        return next((one for one in sets if one["status"].get("conditions")), None)

    wait_for(refused, "the ReplicaSet is refused a pod")
    words = "1 of 2 pods cannot be created: needs 32, quota 48, used 32, short 16"

    def told() -> Json | None:
        code, facts = person.asks("explain", "deploy/web", "-n", namespace)
        return facts if code == 1 and words in facts["message"] else None

    # The ReplicaSet tells of its refusal before it counts the pod that it has.
    facts = wait_for(told, f"the explanation to say {words}")
    assert (facts["groupsPerPod"], facts["replicasWanted"]) == (32, 2)


def test_explain_of_a_stateful_set_reads_its_events(person: Person, api: ApiClient) -> None:
    """A StatefulSet has no condition for it; the refusal is found in its events."""
    namespace = person.namespace
    limit(api, namespace, groups=8)
    content = deployment("llama")
    content["spec"]["serviceName"] = "llama"
    api.create(f"/apis/apps/v1/namespaces/{namespace}/statefulsets", content)
    wait_for(lambda: api.items(f"/api/v1/namespaces/{namespace}/events?fieldSelector=reason=FailedCreate"), "an event")
    code, facts = person.asks("explain", "sts/llama", "-n", namespace)
    assert code == 1
    assert "the pod cannot be created: needs 32, quota 8, used 0, short 24" in facts["message"]


def test_explain_of_a_gated_pod_names_the_gate(person: Person, api: ApiClient) -> None:
    """A pod that its gate holds is told as that, with the API server's condition."""
    container = {"name": "vllm", "image": "localhost/none:1", "resources": {"limits": {RESOURCE: "32"}}}
    spec = {"containers": [container], "schedulingGates": [{"name": "ctagroup.dev/placement"}]}
    pods = f"/api/v1/namespaces/{person.namespace}/pods"
    api.create(pods, {"metadata": {"name": "web"}, "spec": spec})
    code, facts = person.asks("explain", "pod/web", "-n", person.namespace)
    assert code == 1
    assert "Scheduling gates that hold it: ctagroup.dev/placement." in facts["remarks"]
    assert "SchedulingGated" in {condition["reason"] for condition in facts["conditions"]}


def test_explain_of_nothing_is_bad_input(person: Person) -> None:
    """An object that does not exist ends with 2 and names where it was looked for."""
    ended = person.types("kubectl-cta", "explain", "deploy/missing", "-n", person.namespace)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert f"deployment/missing is not in namespace {person.namespace}" in ended.stderr


def test_quota_shows_the_part_of_the_namespace(person: Person, api: ApiClient) -> None:
    """A quota of the namespace is shown with its numbers; pending groups end with 1."""
    name = f"quota-{person.namespace}"
    spec = {"groups": 64, "namespaces": [person.namespace]}
    share = {"name": person.namespace, "hard": 64, "used": 64, "pending": 32}
    status = {"groups": 64, "used": 64, "pending": 32, "namespaces": [share]}
    publish(api, f"{OURS}/ctaquotas", "CTAQuota", {"metadata": {"name": name}, "spec": spec}, status)
    try:
        code, facts = person.asks("quota", "-n", person.namespace)
        assert code == 1
        assert [(one["name"], one["status"]["pending"]) for one in facts["quotas"]] == [(name, 32)]
        assert f"{person.namespace} 64 of 64" in person.types("kubectl-cta", "quota").stdout
    finally:
        api.delete(f"{OURS}/ctaquotas/{name}")


def test_cluster_that_is_away_is_one_sentence(person: Person, tmp_path: Path, control_plane: ControlPlane) -> None:
    """Nobody at the address of the kubeconfig: exit status 2, one line, no retries, no traceback."""
    away = tmp_path / "kubeconfig"
    text = control_plane.admin_kubeconfig.read_text()
    away.write_text(text.replace(control_plane.server, "https://127.0.0.1:1"))
    ended = person.types("kubectl-cta", "top", "--kubeconfig", str(away))
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("kubectl cta top: the cluster at https://127.0.0.1:1 does not answer")
    assert ended.stderr.count("\n") == 1


def test_user_without_rights_gets_the_refusal(person: Person, tmp_path: Path, control_plane: ControlPlane) -> None:
    """What the API server refuses is told in its words, with exit status 2."""
    config = yaml.safe_load(control_plane.admin_kubeconfig.read_text())
    config["users"][0]["user"] = {"token": "nobody"}
    nobody = tmp_path / "kubeconfig"
    nobody.write_text(yaml.safe_dump(config))
    ended = person.types("kubectl-cta", "top", "--kubeconfig", str(nobody))
    assert ended.returncode == 2
    assert "the cluster refuses GET /apis/ctagroup.dev/v1alpha1/ctanodes: 401 Unauthorized" in ended.stderr
