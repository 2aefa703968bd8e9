"""What kube-scheduler's sentences tell of the nodes."""

import pytest

from cta_group_core.scheduler_words import would_other_nodes_help


@pytest.mark.parametrize(
    "reason",
    [
        "1 Insufficient cpu, 3 node(s) didn't match Pod's node affinity/selector. preemption: 0/4 nodes are available",
        "1 node(s) didn't match PersistentVolume's node affinity, 3 node(s) had untolerated taint(s).",
        "node(s) didn't satisfy plugin(s) [NodeAffinity VolumeBinding] simultaneously.",
        "2 node(s) didn't satisfy plugin(s) [NodeAffinity], 2 node(s) had volume node affinity conflict.",
    ],
)
def test_reasons_that_lie_with_nodes(reason: str) -> None:
    """Other nodes may have what these have not."""
    assert would_other_nodes_help(f"0/4 nodes are available: {reason}")


@pytest.mark.parametrize(
    "reason",
    [
        "pod has unbound immediate PersistentVolumeClaims. not found",
        'persistentvolumeclaim "data" not found. preemption: 0/4 nodes are available: 4 Preemption is not helpful.',
        'persistentvolumeclaim "data" is being deleted.',
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-data".',
        'resourceclaim "fast" not found.',
    ],
)
def test_reasons_that_lie_with_the_pod(reason: str) -> None:
    """No node would help, so none is to be left out."""
    assert not would_other_nodes_help(f"0/4 nodes are available: {reason}")


@pytest.mark.parametrize("words", ["", "no nodes available to schedule pods", "nodes are available:", "not ready"])
def test_sentences_of_another_form(words: str) -> None:
    """What nobody knows is taken as before: other nodes are tried."""
    assert would_other_nodes_help(words)
