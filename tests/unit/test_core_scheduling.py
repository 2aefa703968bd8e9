"""What a pod insists on besides groups decides where it may be released."""

import pytest

from cta_group_core.ids import NodeName
from cta_group_core.scheduling import Load, NodeFacts, NodeTerm, PodTerms, Taint, Toleration, objection
from cta_group_core.selectors import Operator, Requirement

NODE = NodeFacts(NodeName("node-a"), {"pool": "gpu"}, taints=(), cpu_milli=4000, memory_bytes=8 << 30, pods=10)
GPU_TAINT = Taint("gpu", "only", "NoSchedule")


def on_name(*names: str) -> Requirement:
    """Return the requirement that the node has one of these names."""
    return Requirement(key="metadata.name", operator=Operator.IN, values=names)


def test_an_ordinary_pod_has_no_objection() -> None:
    """A pod without terms runs anywhere."""
    assert objection(PodTerms(), NODE, Load()) is None


@pytest.mark.parametrize(
    ("pod", "words"),
    [
        (PodTerms(node_selector=(("pool", "cpu"),)), "node selector pool=cpu"),
        (PodTerms(node_terms=()), "required node affinity"),
        (PodTerms(node_terms=(NodeTerm(),)), "required node affinity"),
        (PodTerms(node_terms=(NodeTerm(fields=(on_name("node-b"),)),)), "required node affinity"),
        (PodTerms(cpu_milli=3001), "cpu: 3001m asked, 3000m left"),
        (PodTerms(memory_bytes=9 << 30), "memory: 9216 MiB asked, 8192 MiB left"),
    ],
)
def test_objections(pod: PodTerms, words: str) -> None:
    """Each unmet term is told with what was asked."""
    assert objection(pod, NODE, Load(cpu_milli=1000, pods=1)) == words


def test_terms_are_alternatives() -> None:
    """One term that holds is enough, and all of its parts must hold."""
    pool = Requirement(key="pool", operator=Operator.EXISTS)
    wrong = NodeTerm(expressions=(pool,), fields=(on_name("node-b"),))
    right = NodeTerm(expressions=(pool,), fields=(on_name("node-a"),))
    assert objection(PodTerms(node_terms=(wrong, right)), NODE, Load()) is None
    assert objection(PodTerms(node_terms=(wrong,)), NODE, Load()) is not None


def test_full_node() -> None:
    """A node that has as many pods as it takes is out of question."""
    assert objection(PodTerms(), NODE, Load(pods=10)) == "10 pods, the most it takes"


def test_a_pod_that_asks_no_cpu_ignores_cpu() -> None:
    """A pod without a cpu request may go to a node whose cpu is promised already, as in Kubernetes."""
    assert objection(PodTerms(), NODE, Load(cpu_milli=9000)) is None


@pytest.mark.parametrize(
    ("toleration", "tolerated"),
    [
        (Toleration("gpu", "Equal", "only", "NoSchedule"), True),
        (Toleration("gpu", "Equal", "only"), True),
        (Toleration("gpu", "Exists"), True),
        (Toleration(operator="Exists"), True),
        (Toleration("gpu", "Equal", "other"), False),
        (Toleration("cpu", "Exists"), False),
        (Toleration("gpu", "Exists", effect="NoExecute"), False),
        (Toleration("gpu", "Gt", "0"), False),
    ],
)
def test_tolerations(toleration: Toleration, *, tolerated: bool) -> None:
    """A taint that repels is an objection unless it is tolerated."""
    tainted = NodeFacts(NODE.name, NODE.labels, (GPU_TAINT,), cpu_milli=4000, memory_bytes=8 << 30, pods=10)
    words = None if tolerated else "taint gpu=only:NoSchedule"
    assert objection(PodTerms(tolerations=(toleration,)), tainted, Load()) == words


def test_preferred_taints_do_not_repel() -> None:
    """PreferNoSchedule is the scheduler's business."""
    tainted = NodeFacts(NODE.name, NODE.labels, (Taint("gpu", "", "PreferNoSchedule"),), pods=10)
    assert objection(PodTerms(), tainted, Load()) is None


def test_cordon() -> None:
    """A cordoned node is out of question unless the pod tolerates that."""
    cordoned = NodeFacts(NODE.name, NODE.labels, unschedulable=True, pods=10)
    assert objection(PodTerms(), cordoned, Load()) == "cordoned"
    assert objection(PodTerms(tolerations=(Toleration(operator="Exists"),)), cordoned, Load()) is None
