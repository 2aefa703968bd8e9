"""The object in which a workload is explained: its name, its form, the times of its conditions."""

from cta_group_core.conditions import merge_conditions
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.workload import WorkloadOwner, WorkloadStatus, object_name


def test_status_reads_back() -> None:
    """What is written for the API server is read back as the same value."""
    status = WorkloadStatus(owner=WorkloadOwner(api_version="apps/v1", kind="Deployment", name="web"), message="m")
    assert WorkloadStatus.model_validate(status.as_api()) == status


def test_names() -> None:
    """The name of the object is made of kind and name, and stays within Kubernetes' limit without clashing."""
    assert object_name("Deployment", "web") == "deployment-web"
    long = object_name("StatefulSet", "a" * 253)
    assert len(long) <= 253
    assert long != object_name("StatefulSet", "a" * 252)


def test_names_of_kinds_that_others_have_too() -> None:
    """Volcano's Job is explained beside Kubernetes' own of that name; other kinds are named as they always were."""
    assert object_name("Job", "train", "batch/v1") == object_name("Job", "train") == "job-train"
    assert object_name("Job", "train", "batch.volcano.sh/v1alpha1") == "job.batch.volcano.sh-train"
    assert object_name("InferenceService", "llama", "serving.kserve.io/v1beta1") == "inferenceservice-llama"


def test_transition_times_change_with_the_status_only() -> None:
    """A condition keeps its time while its status is the same, whatever its words."""
    true = Condition(type="Placed", status=ConditionStatus.TRUE, reason="Placed")
    false = Condition(type="Placed", status=ConditionStatus.FALSE, reason="NoRoom", message="no")
    first = merge_conditions((), (false,), "t1")
    assert first[0].last_transition_time == "t1"
    assert merge_conditions(first, (false.model_copy(update={"message": "x"}),), "t2")[0].last_transition_time == "t1"
    assert merge_conditions(first, (true,), "t3")[0].last_transition_time == "t3"
