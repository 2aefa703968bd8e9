"""How people name an object."""

import pytest

from cta_group_cli.errors import BadInput
from cta_group_cli.kinds import Reference, kind_called


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("deployment/web", "Deployment"),
        ("deploy/web", "Deployment"),
        ("deployments/web", "Deployment"),
        ("deployment.apps/web", "Deployment"),
        ("deployments.apps/web", "Deployment"),
        ("Deployment/web", "Deployment"),
        ("DEPLOY/web", "Deployment"),
        ("sts/web", "StatefulSet"),
        ("rs/web", "ReplicaSet"),
        ("ds/web", "DaemonSet"),
        ("job/web", "Job"),
        ("jobs.batch/web", "Job"),
        ("cj/web", "CronJob"),
        ("po/web", "Pod"),
        ("pods/web", "Pod"),
        ("lws/web", "LeaderWorkerSet"),
        ("leaderworkersets.leaderworkerset.x-k8s.io/web", "LeaderWorkerSet"),
    ],
)
def test_kinds_as_kubectl_takes_them(text: str, kind: str) -> None:
    """Names, plurals, short names and names with their group mean the same kind, in any case."""
    reference = Reference.parse(text, "team-a")
    assert (reference.kind.name, reference.namespace, reference.name) == (kind, "team-a", "web")
    assert reference.kind.path is not None


def test_kind_that_is_not_known_keeps_its_name() -> None:
    """A kind of some other operator can be named too; only its CTAWorkload can be read."""
    assert kind_called("InferenceService").path is None
    assert str(Reference.parse("InferenceService/llama", "a")) == "inferenceservice/llama"


def test_core_group_is_not_part_of_a_name() -> None:
    """A pod has no group, so a version is not one."""
    assert kind_called("pods.v1").path is None


@pytest.mark.parametrize(
    "text", ["", "web", "/web", "deploy/", "deploy/web/1", "deploy/-web", "deploy/we b", "de ploy/a"]
)
def test_other_words_are_taught(text: str) -> None:
    """Anything but KIND/NAME is refused with an example of what to write."""
    with pytest.raises(BadInput, match="write KIND/NAME, such as deployment/web"):
        Reference.parse(text, "team-a")


@pytest.mark.parametrize("namespace", ["a/b", "a b", "..", "A", "a" * 64, "-a"])
def test_what_cannot_be_a_namespace_is_not_asked_for(namespace: str) -> None:
    """Text that would lead to another path of the API server is refused."""
    with pytest.raises(BadInput, match="cannot be a namespace"):
        Reference.parse("pod/web", namespace)
