"""``kubectl cta doctor`` about the release: its workloads, admission, and the runtime classes of tenants."""

from typing import Any

import pytest

from cta_group_cli.doctor_facts import Rehearsal, RuntimeClass
from cta_group_core.compatibility.findings import Severity
from doctor_checkup import WELL, found, only
from fake_doctor_reader import (
    FakeDoctorReader,
    machine,
    policy,
    release_pod,
    tenant,
    webhook,
    workload,
)


def test_a_node_that_the_daemon_set_leaves_out() -> None:
    """Asked for by name, a node without a pod of the plugin says which values take it in."""
    reader = WELL.but(all_machines=[machine("gpu-1"), machine("gpu-2")])
    assert "nodes.tolerations" in only(reader, "gpu-2").finding.remedy
    assert found(reader) == []


@pytest.mark.parametrize(
    ("status_of_pod", "words", "remedy"),
    [
        (
            {
                "phase": "Pending",
                "conditions": [],
                "containerStatuses": [
                    {"name": "plugin", "state": {"waiting": {"reason": "ImagePullBackOff", "message": "not found"}}}
                ],
            },
            "ImagePullBackOff: not found",
            "image.repository",
        ),
        (
            {
                "conditions": [
                    {"type": "Ready", "status": "False", "message": "containers with unready status: [plugin]"}
                ]
            },
            "unready status",
            "logs cta-group-plugin-x",
        ),
        ({"phase": "Pending", "conditions": []}, "its phase is Pending", "describe pod"),
    ],
)
def test_a_pod_of_the_release_that_does_not_run(status_of_pod: dict[str, Any], words: str, remedy: str) -> None:
    """Kubelet's own reason, and where to look."""
    told = only(WELL.but(pods=[release_pod("plugin", "gpu-1", **status_of_pod), release_pod("mps", "gpu-1")]))
    assert words in told.finding.sentence
    assert remedy in told.finding.remedy


def test_parts_of_the_release_that_are_missing_or_not_ready() -> None:
    """No release, no operator, an operator without a ready pod, a DaemonSet with some."""
    assert "helm install" in only(WELL.but(workloads=[])).finding.remedy
    plugin, mps, _ = WELL.workloads
    assert only(WELL.but(workloads=[plugin, mps])).finding.subject == "operator"
    dead = only(WELL.but(workloads=[plugin, mps, workload("operator", wanted=2, ready=0)])).finding
    assert (dead.severity, "stand still" in dead.sentence) == (Severity.ERROR, True)
    none = only(WELL.but(workloads=[plugin, mps, workload("operator", wanted=0, ready=0)])).finding
    assert (none.severity, "--replicas=2" in none.remedy) == (Severity.ERROR, True)
    half = only(WELL.but(workloads=[plugin, mps, workload("operator", wanted=2, ready=1)])).finding
    assert (half.severity, half.sentence) == (Severity.WARNING, "1 of 2 pods are ready")


def test_a_cluster_without_the_kinds_is_examined_all_the_same() -> None:
    """That no node can publish is told once, and what else is wrong with the release beside it."""
    reader = WELL.but(has_kinds=False)
    told = only(reader).finding
    assert (told.severity, told.subject, "crds.enabled" in told.remedy) == (Severity.ERROR, "kinds", True)
    assert only(reader, "gpu-1").finding == told
    plugin, mps, _ = WELL.workloads
    assert [one.finding.subject for one in found(reader.but(workloads=[plugin, mps]))] == ["kinds", "operator"]


def test_mps_pods_of_an_earlier_revision_are_worth_knowing() -> None:
    """The DaemonSet is never rolled, so nobody else tells."""
    plugin, _, operator = WELL.workloads
    old = only(WELL.but(workloads=[plugin, workload("mps", wanted=3, updatedNumberScheduled=1), operator])).finding
    assert (old.severity, old.sentence.partition(" are")[0]) == (Severity.INFO, "2 of 3 pods")


def test_no_node_takes_part() -> None:
    """A release whose DaemonSet selects nothing is told."""
    told = only(WELL.but(all_nodes=[], pods=[], tenants=[]))
    assert "no node has a pod of the plugin" in told.finding.sentence


def test_pods_that_came_past_the_webhook_are_counted() -> None:
    """The webhook labels what it sees; what it was never asked about, or could not have seen, does not count."""
    old = tenant("old", seen=False).model_copy(
        update={"metadata": tenant("old", seen=False).metadata.model_copy(update={"creation_timestamp": "2026-11-01"})}
    )
    passed = [tenant(f"passed-{number}", seen=False) for number in range(4)]
    others = [tenant(seen=False, namespace="kube-system"), tenant(seen=False, groups=0), old, tenant()]
    told = only(WELL.but(tenants=[*passed, *others]))
    assert told.finding.sentence.startswith("4 pods of the resource were admitted without it (team-a/passed-0, ")
    assert "webhook.port" in told.finding.remedy


def test_a_webhook_that_is_not_reached_is_found_without_any_pod() -> None:
    """A pod that is only rehearsed comes back without the webhook's label."""
    told = only(WELL.but(rehearsal=Rehearsal({}, 2.01)))
    assert (told.finding.severity, "in 2.0 s without the webhook" in told.finding.sentence) == (Severity.ERROR, True)


def test_a_slow_webhook() -> None:
    """Near its limit the API server will soon give up on it."""
    assert "took 1.8 s" in only(WELL.but(rehearsal=Rehearsal({"ctagroup.dev/requests": "true"}, 1.8))).finding.sentence


def test_a_webhook_without_authority_or_configuration() -> None:
    """Both keep every pod from being placed and aligned, or what can never start from being refused."""
    changes, refuses = webhook(), webhook(mutates=False)
    untrusted = only(WELL.but(all_webhooks=[webhook(""), refuses])).finding.sentence
    assert "certificate authority" in untrusted
    assert "neither placed nor aligned" in untrusted
    assert (
        "no vLLM server is refused"
        in only(WELL.but(all_webhooks=[changes, webhook("", mutates=False)])).finding.sentence
    )
    assert "MutatingWebhookConfiguration is missing" in only(WELL.but(all_webhooks=[refuses])).finding.sentence
    assert "ValidatingWebhookConfiguration is missing" in only(WELL.but(all_webhooks=[changes])).finding.sentence
    plugin, mps, _ = WELL.workloads
    off = workload("operator", "run", "--webhook-port=0", wanted=2)
    assert found(WELL.but(all_webhooks=[], workloads=[plugin, mps, off])) == []


def test_policies_that_refuse_nothing_or_are_wrong() -> None:
    """A policy needs its binding, and the API server's own findings are passed on."""
    assert "nothing binds it" in only(WELL.but(bindings=[])).finding.sentence
    told = only(WELL.but(all_policies=[policy("cta-group-units", "undefined field\n  'foo'")]))
    assert "undefined field 'foo'" in told.finding.sentence


def test_pods_without_the_runtime_class_that_brings_the_gpu() -> None:
    """Where NVIDIA's runtime is not the default, a tenant needs its class too, unless slices are CDI devices."""
    _, mps, operator = WELL.workloads

    def with_plugin(*args: str) -> FakeDoctorReader:
        plugin = workload("plugin", "run", *args, spec={"runtimeClassName": "nvidia"})
        return WELL.but(workloads=[plugin, mps, operator])

    told = only(with_plugin("--device-list=envvar"))
    assert "1 pods (team-a/vllm-0) without it get the environment of a slice and no GPU" in told.finding.sentence
    assert "deviceList: cdi" in told.finding.remedy
    assert found(with_plugin("--device-list=cdi")) == []
    assert found(with_plugin().but(tenants=[tenant(runtimeClassName="nvidia")])) == []


def test_pods_where_the_driver_is_a_folder_and_no_runtime_is_known() -> None:
    """Variables bring a GPU only where an NVIDIA runtime reads them."""
    _, mps, operator = WELL.workloads

    def with_plugin(*args: str) -> FakeDoctorReader:
        plugin = workload("plugin", "run", "--driver-root=/driver", *args)
        return WELL.but(workloads=[plugin, mps, operator])

    told = only(with_plugin("--device-list=envvar"))
    assert "1 pods (team-a/vllm-0) get the environment of a slice and no GPU" in told.finding.sentence
    assert "deviceList: cdi" in told.finding.remedy
    assert found(with_plugin("--device-list=cdi")) == []
    assert found(with_plugin().but(tenants=[tenant(runtimeClassName="nvidia")])) == []


@pytest.mark.parametrize(("handler", "count"), [("crun", 1), ("nvidia", 0)])
def test_a_class_that_is_not_known_to_bring_gpus(handler: str, count: int) -> None:
    """Another name for the same runtime is as good; another runtime may bring none."""
    _, mps, operator = WELL.workloads
    plugin = workload("plugin", "run", "--device-list=envvar", spec={"runtimeClassName": "nvidia"})
    named = {"nvidia": "nvidia", "special": handler}
    classes = [RuntimeClass.model_validate({"metadata": {"name": one}, "handler": its}) for one, its in named.items()]
    reader = WELL.but(workloads=[plugin, mps, operator], classes=classes, tenants=[tenant(runtimeClassName="special")])
    sentences = [one.finding.sentence for one in found(reader)]
    assert len(sentences) == count
    assert all("its handler crun is not that of nvidia" in sentence for sentence in sentences)


def test_a_runtime_class_from_where_mps_cannot_be_reached() -> None:
    """A sandbox is known by its handler, whatever the class is called."""
    kata = RuntimeClass.model_validate({"metadata": {"name": "safe"}, "handler": "kata-qemu"})
    told = only(WELL.but(classes=[kata], tenants=[tenant(runtimeClassName="safe")]))
    assert "its handler kata-qemu" in told.finding.sentence
