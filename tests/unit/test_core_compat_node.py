"""What doctor says about driver, limits, host and images, with the way to mend it; a good node has no findings."""

import pytest

from cta_group_core.compatibility.driver_findings import driver_findings, enforcement_findings
from cta_group_core.compatibility.findings import Finding, Severity, worst_first
from cta_group_core.compatibility.host_findings import TOOLKIT_MPS_FOLDER, HostFacts, host_findings
from cta_group_core.compatibility.image_findings import image_findings
from cta_group_core.compatibility.node_findings import node_findings
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion
from cta_group_core.nodes import Enforcement
from gpu_strategies import uuid_of
from measured_node import CUDA_13, GOOD, NODE, R580, gpu, only


def test_a_good_node_has_no_findings() -> None:
    """An H200 with R580 in the state it was measured in gives nothing to say."""
    assert node_findings(NODE, HostFacts(kubelet_version="v1.35.4"), max_clients=48) == ()


def test_the_worst_comes_first() -> None:
    """Findings are ordered by severity, and stay as they were within one."""
    found = [Finding(severity, name, "x", "y") for severity, name in zip(list(Severity) * 2, "abcdef", strict=True)]
    assert [finding.subject for finding in worst_first(reversed(found))] == ["d", "a", "e", "b", "f", "c"]


def test_everything_of_a_node_is_told_together() -> None:
    """Driver, limits, GPUs and host each contribute, the worst first."""
    node = NODE.model_copy(
        update={
            "driver_version": "550.10",
            "enforcement": Enforcement(backend="partitions"),
            "gpus": (gpu(persistence_mode=False),),
        }
    )
    found = node_findings(node, HostFacts(toolkit_mps_mount=True), max_clients=50)
    assert [(finding.severity, finding.subject) for finding in found] == [
        (Severity.ERROR, "enforcement"),
        (Severity.WARNING, "enforcement"),
        (Severity.WARNING, f"GPU 0 ({uuid_of(0)})"),
        (Severity.WARNING, TOOLKIT_MPS_FOLDER),
        (Severity.INFO, "driver"),
    ]
    assert all(finding.sentence and finding.remedy for finding in found)


def test_a_simulated_node_is_said_to_be_one() -> None:
    """Of simulated GPUs only that is told, and what holds for the host."""
    node = NODE.model_copy(update={"simulated": True, "driver_version": None, "gpus": (gpu(persistence_mode=False),)})
    finding = only(node_findings(node, HostFacts()))
    assert finding.severity is Severity.INFO
    assert "simulated" in finding.sentence


@pytest.mark.parametrize(
    ("version", "severity", "words"),
    [
        (None, Severity.ERROR, "no NVIDIA driver answers"),
        ("470.82.01", Severity.ERROR, "R470 does not tell how much of a GPU's memory"),
        ("550.54.15", Severity.INFO, "R550 does not tell which repair"),
        ("beta", Severity.WARNING, "driver version 'beta'"),
    ],
)
def test_drivers_with_findings(version: str | None, severity: Severity, words: str) -> None:
    """A driver that is absent, too old for something, or unreadable is told with what follows from it."""
    finding = only(driver_findings(version))
    assert finding.severity is severity
    assert words in finding.sentence


@pytest.mark.parametrize("version", ["570.10", "580.159.04", "615.71"])
def test_drivers_without_findings(version: str) -> None:
    """From R570 on a driver has all that is used of it."""
    assert driver_findings(version) == ()


@pytest.mark.parametrize(
    ("enforcement", "words"),
    [
        (Enforcement(compute=False), "the compute of slices is not limited"),
        (Enforcement(memory=False), "the memory of slices is not limited"),
        (Enforcement(backend="partitions"), "driver R590 or newer (here R580) and CUDA 13.1 or newer"),
        (Enforcement(backend="magic"), "known: percentage, partitions, namespaces"),
    ],
)
def test_limits_that_do_not_hold(enforcement: Enforcement, words: str) -> None:
    """A dimension that is switched off and a backend that cannot work here are told."""
    finding = only(enforcement_findings(enforcement, driver=R580, cuda=CUDA_13, gpus=[GOOD]))
    assert words in finding.sentence


def test_a_backend_that_is_switched_off_is_not_judged() -> None:
    """With compute not limited it does not matter which backend would have limited it."""
    off = Enforcement(backend="partitions", compute=False)
    assert only(enforcement_findings(off, driver=R580, cuda=CUDA_13, gpus=[GOOD])).severity is Severity.INFO


@pytest.mark.parametrize(("facts", "count"), [({}, 1), ({"capacity": 0}, 0), ({"compute_capability": "?"}, 0)])
def test_gpus_that_a_backend_cannot_limit(facts: dict[str, object], count: int) -> None:
    """A GPU that is served and too old for the backend is named; one that is not served is left alone."""
    old = gpu(compute_capability="6.1").model_copy(update=facts)
    found = enforcement_findings(Enforcement(), driver=R580, cuda=CUDA_13, gpus=[GOOD, old])
    assert [finding.sentence for finding in found] == [
        "backend percentage cannot limit slices of this GPU; it needs compute capability 7.0 or newer (here 6.1)"
    ] * count


def test_cuda_without_memory_limits() -> None:
    """Before CUDA 11.5 MPS has no memory limit."""
    finding = only(enforcement_findings(Enforcement(), driver=None, cuda=CudaVersion(11, 4), gpus=[]))
    assert finding.severity is Severity.ERROR
    assert "(here 11.4)" in finding.sentence


@pytest.mark.parametrize(
    ("clients", "cuda", "told"),
    [(48, CUDA_13, False), (49, CUDA_13, True), (60, CudaVersion(13, 1), False), (61, None, True), (None, None, False)],
)
def test_more_clients_than_the_server_takes(clients: int | None, cuda: CudaVersion | None, *, told: bool) -> None:
    """A limit of clients above what the MPS server takes is told with both numbers."""
    found = enforcement_findings(Enforcement(), driver=R580, cuda=cuda, gpus=[], max_clients=clients)
    assert [f"up to {clients} containers" in finding.sentence for finding in found] == [True] * told


@pytest.mark.parametrize(
    ("host", "words"),
    [
        (HostFacts(toolkit_mps_mount=True), "mounts it into every GPU container"),
        (HostFacts(kubelet_version="v1.36.0"), "about 80 bytes each"),
        (HostFacts(kubelet_version="v1.37.2+k3s1", long_ids=False), "about 45 bytes each"),
        (HostFacts(kubelet_version="v1.37.2", feature_gates={"ResourceHealthStatusMessage": False}), "142293"),
        (HostFacts(kubelet_version="unknown"), "Kubernetes version 'unknown'"),
    ],
)
def test_hosts_with_findings(host: HostFacts, words: str) -> None:
    """A folder that leads every container to a strange MPS daemon, and a kubelet that writes too much, are told."""
    assert words in only(host_findings(host)).sentence


@pytest.mark.parametrize(
    "host",
    [
        HostFacts(),
        HostFacts(kubelet_version="v1.35.9"),
        HostFacts(kubelet_version="v1.38.0"),
        HostFacts(kubelet_version="v1.37.2", feature_gates={"ResourceHealthStatus": False}),
    ],
)
def test_hosts_without_findings(host: HostFacts) -> None:
    """A kubelet from before, one of which nothing is known yet, and one with the gate off are fine."""
    assert host_findings(host) == ()


def test_both_gates_are_named() -> None:
    """The remedy names both gates, since kubelet does not start with the first alone."""
    remedy = only(host_findings(HostFacts(kubelet_version="v1.37.2"))).remedy
    assert "ResourceHealthStatus=false,ResourceHealthStatusMessage=false" in remedy
    assert "deviceIds: short" in remedy


@pytest.mark.parametrize(
    ("image", "driver", "cuda", "severity", "words"),
    [
        ("vllm/vllm-openai:v0.27.1", "550.54.15", "12.4", Severity.ERROR, "needs driver R580 or newer; this node has"),
        ("vllm/vllm-openai:v0.27.1", None, "12.4", Severity.ERROR, "this node's driver supports CUDA 12.4"),
        ("vllm/vllm-openai:v0.9.0", "535.183.01", "12.2", Severity.WARNING, "unsatisfied condition: cuda>=12.8"),
    ],
)
def test_images_that_a_driver_does_not_run(
    image: str, driver: str | None, cuda: str, severity: Severity, words: str
) -> None:
    """An image of a newer CUDA major does not run; one of a newer minor may be refused."""
    version = DriverVersion.parse(driver) if driver else None
    finding = only(image_findings(image, driver=version, cuda=CudaVersion.parse(cuda)))
    assert finding.severity is severity
    assert words in finding.sentence
    assert finding.subject == image


def test_images_that_run_or_are_not_known() -> None:
    """An older CUDA runs on a newer driver, and of an unknown image nothing is said, unless its CUDA is known."""
    assert image_findings("vllm/vllm-openai:v0.20.2-cu129", driver=R580, cuda=CUDA_13) == ()
    assert image_findings("vllm/vllm-openai:v0.27.1", driver=R580, cuda=CUDA_13) == ()
    assert image_findings("vllm/vllm-openai:v0.27.1", driver=None, cuda=None) == ()
    assert image_findings("own/image:1", driver=R580, cuda=CUDA_13) == ()
    told = image_findings("own/image:1", driver=R580, cuda=CUDA_13, built_with=CudaVersion(13, 2))
    assert only(told).severity is Severity.WARNING
