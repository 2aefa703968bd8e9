"""One sentence that answers why a workload is not running, with the numbers."""

from dataclasses import replace

from cta_group_core.conditions import merge_conditions
from cta_group_core.denials import Denial
from cta_group_core.ending_pods import EndingPod
from cta_group_core.explain import CreateFailure, PodFacts, Stage, WorkloadFacts, explain
from cta_group_core.explain_quota import QuotaFacts
from cta_group_core.jobs import JobFacts
from cta_group_core.nodes import Condition, ConditionStatus
from cta_group_core.rollout import Rollout
from cta_group_core.workload import WorkloadOwner, WorkloadStatus, object_name

TEAM_A = QuotaFacts("team-a", groups=256, used=240, share=256, share_used=240)
DENIED = CreateFailure("...", Denial("cta-group", needs=32, used=240, limit=256))


def pods(*stages: Stage, words: str = "") -> tuple[PodFacts, ...]:
    """Return one pod per stage."""
    return tuple(PodFacts(f"web-{place}", stage, words) for place, stage in enumerate(stages))


def told(facts: WorkloadFacts) -> tuple[str, str, str]:
    """Return sentence and both reasons."""
    answer = explain(facts)
    return answer.message, answer.admissible.reason, answer.placed.reason


def test_quota_exceeded() -> None:
    """A refused pod is explained by need, quota, use, what is short, which quota, and what helps."""
    facts = WorkloadFacts(6, 32, pods(*[Stage.RUNNING] * 5), DENIED, TEAM_A)
    message, *reasons = told(facts)
    assert message == (
        "1 of 6 pods cannot be created: needs 32, quota 256, used 240, short 16 (CTAQuota team-a); end or shrink "
        "something there, or raise its spec.groups to 272"
    )
    assert reasons == ["QuotaExceeded", "Placed"]


def test_quota_full_during_a_rollout() -> None:
    """When every pod that is wanted exists, the refused one is a rollout's surge, which it can do without."""
    message, *_ = told(WorkloadFacts(5, 32, pods(*[Stage.RUNNING] * 5), DENIED, TEAM_A))
    assert message.startswith("a further pod cannot be created: needs 32, quota 256, used 240, short 16")
    assert message.endswith("raise its spec.groups to 272, or set maxSurge: 0 when this is a rollout")


def test_no_pod_at_all() -> None:
    """A workload whose only pod is refused says so, and whether it is placed is unknown."""
    facts = WorkloadFacts(1, 32, (), DENIED, TEAM_A)
    message, admissible, placed = told(facts)
    assert message.startswith("the pod cannot be created: needs 32, quota 256, used 240, short 16")
    assert (admissible, placed) == ("QuotaExceeded", "NoPods")


def test_quota_over_several_namespaces() -> None:
    """The numbers are those of the whole quota, since raising one namespace's part would not help."""
    quota = QuotaFacts("team-a", groups=256, used=250, share=128, share_used=120, namespaces=2)
    message, *_ = told(WorkloadFacts(2, 32, (), DENIED, quota))
    assert "needs 32, quota 256, used 250, short 26 (CTAQuota team-a over 2 namespaces)" in message
    assert message.endswith("raise its spec.groups to 314")


def test_room_elsewhere_in_the_quota() -> None:
    """When the quota has room in other namespaces the sentence says that it is being moved."""
    quota = QuotaFacts("team-a", groups=256, used=128, share=128, share_used=128, namespaces=2)
    message, admissible, _ = told(WorkloadFacts(1, 32, (), DENIED, quota))
    assert admissible == "QuotaMoving"
    assert "128 of 256 left" in message


def test_a_cohort_that_lends_not_enough() -> None:
    """What a quota may borrow now is counted, and told beside its own groups."""
    quota = QuotaFacts("team-a", 64, used=96, share=96, share_used=96, cohort="research", reachable=112)
    message, admissible, _ = told(WorkloadFacts(4, 32, pods(*[Stage.RUNNING] * 3), DENIED, quota))
    assert message == (
        "1 of 4 pods cannot be created: needs 32, quota 64 and 48 from cohort research, used 96, short 16 "
        "(CTAQuota team-a); end or shrink something there, or raise its spec.groups to 128"
    )
    assert admissible == "QuotaExceeded"


def test_a_cohort_that_lends_enough() -> None:
    """Room that the cohort has is being moved, also above the quota's own groups."""
    quota = QuotaFacts("team-a", 64, used=64, share=64, share_used=64, cohort="research", reachable=128)
    message, admissible, _ = told(WorkloadFacts(3, 32, (), DENIED, quota))
    assert admissible == "QuotaMoving"
    assert "64 of 128 left" in message


def test_groups_that_are_lent_out() -> None:
    """A pod that its own quota would have room for is told that others hold it, and when it comes back."""
    quota = QuotaFacts("team-a", 128, used=64, share=64, share_used=64, cohort="research", reachable=64)
    message, admissible, _ = told(WorkloadFacts(3, 32, pods(Stage.RUNNING, Stage.RUNNING), DENIED, quota))
    assert message == (
        "1 of 3 pods cannot be created: needs 32, quota 128 of which 64 are lent to cohort research, used 64, short 32 "
        "(CTAQuota team-a); what others of the cohort hold comes back as pods there end"
    )
    assert admissible == "QuotaLent"


def test_groups_of_a_pod_that_ends() -> None:
    """A pod that is being deleted is charged until it is gone; it is named with the latest moment of that."""
    ending = [EndingPod("web-0", 32, "2026-01-01T00:02:00Z")]
    quota = QuotaFacts("team-a", groups=64, used=64, share=64, share_used=64, ending=ending)
    message, *_ = told(WorkloadFacts(2, 32, pods(Stage.RUNNING), DENIED, quota))
    assert (
        "short 32 (CTAQuota team-a); groups come back: 32 when pod web-0 has ended, by 2026-01-01T00:02:00Z; "
        in message
    )


def test_room_again() -> None:
    """After the quota got room the sentence does not repeat the old numbers."""
    quota = QuotaFacts("team-a", groups=288, used=240, share=288, share_used=240)
    message, admissible, _ = told(WorkloadFacts(6, 32, pods(*[Stage.RUNNING] * 5), DENIED, quota))
    assert admissible == "QuotaRetry"
    assert "240 of 288 used" in message


def test_hand_made_quota() -> None:
    """A ResourceQuota that no CTAQuota owns is named, with the numbers of the refusal."""
    message, *_ = told(WorkloadFacts(6, 32, pods(*[Stage.RUNNING] * 5), DENIED))
    assert "needs 32, quota 256, used 240, short 16 (ResourceQuota cta-group)" in message


def test_a_quota_that_people_made_beside_ours() -> None:
    """What refused is named, though the namespace has a CTAQuota with room: that one is not in the way."""
    roomy = QuotaFacts("team-a", groups=256, used=40, share=256, share_used=40)
    theirs = CreateFailure("...", Denial("by-hand", needs=32, used=40, limit=64))
    message, admissible, _ = told(WorkloadFacts(2, 32, pods(Stage.RUNNING), theirs, roomy))
    assert admissible == "QuotaExceeded"
    assert message == (
        "1 of 2 pods cannot be created: needs 32, quota 64, used 40, short 8 (ResourceQuota by-hand); "
        "end something in the namespace, or raise that quota"
    )


def test_other_refusals_keep_their_words() -> None:
    """What is no quota is told in the API server's words; other resources are named."""
    other = CreateFailure("...", Denial("compute", about_groups=False, other_resources=("cpu",)))
    assert told(WorkloadFacts(1, 32, (), other))[:2] == (
        "the pod cannot be created: ResourceQuota compute has not enough cpu",
        "OtherQuotaExceeded",
    )
    policy = CreateFailure("denied: ask for 8 to 128 in steps of 8")
    assert told(WorkloadFacts(1, 12, (), policy))[:2] == (
        "the pod cannot be created: denied: ask for 8 to 128 in steps of 8",
        "CreateRefused",
    )
    wrapped = CreateFailure(
        '(combined from similar events): Error creating: pods "a" is forbidden: ValidatingAdmissionPolicy '
        "'cta-group-units' with binding 'cta-group-units' denied request: ask for 8 to 128"
    )
    message = told(WorkloadFacts(1, 12, (), wrapped))[0]
    assert message == "the pod cannot be created: ask for 8 to 128 (policy cta-group-units)"
    new = CreateFailure("...", Denial("cta-group", not_counted_yet=True))
    assert told(WorkloadFacts(1, 32, (), new))[1] == "QuotaNotCounted"


def test_no_room() -> None:
    """A gated pod is explained by what placement says, before pods that wait for other reasons."""
    facts = WorkloadFacts(
        2, 96, (PodFacts("web-0", Stage.UNSCHEDULED), PodFacts("web-1", Stage.NO_ROOM, "asked for 96 groups, but ..."))
    )
    assert told(facts) == (
        "1 of 2 pods waits for room: asked for 96 groups, but ...",
        "Admitted",
        "NoRoom",
    )


SURGE = Rollout(surge=1, unavailable=0, surge_words="25%")


def test_a_rollout_that_waits_while_all_run() -> None:
    """Those that wait are none of the pods that are wanted: these run, and what spares the room is said."""
    waits = PodFacts("new", Stage.NO_ROOM, "asked for 96 groups, but ...")
    instead = "; or let the rollout end a pod first: set maxSurge: 0 and maxUnavailable: 1"
    one = WorkloadFacts(1, 96, (*pods(Stage.RUNNING), waits), rollout=SURGE)
    assert told(one)[0] == f"a further pod waits for room (1 of 1 runs): asked for 96 groups, but ...{instead}"
    two = WorkloadFacts(2, 96, (*pods(Stage.RUNNING, Stage.RUNNING), waits, replace(waits, name="newer")))
    assert told(two)[0] == "2 further pods wait for room (2 of 2 run): asked for 96 groups, but ..."


def test_a_rollout_of_which_some_are_missing() -> None:
    """With room to end pods first it needs no advice; those that run are counted all the same."""
    there = pods(*[Stage.RUNNING] * 3, Stage.WAITING, Stage.WAITING)
    message, *_ = told(WorkloadFacts(4, 8, there, rollout=Rollout(surge=1, unavailable=1)))
    assert message == "2 further pods wait for their nodes to be chosen (3 of 4 run)"


def test_waiting_and_unschedulable() -> None:
    """A pod that is not decided yet, and one that the scheduler cannot bind, say which of both they are."""
    assert told(WorkloadFacts(3, 8, pods(Stage.WAITING, Stage.WAITING)))[::2] == (
        "2 of 3 pods wait for their nodes to be chosen",
        "Waiting",
    )
    message, _, placed = told(WorkloadFacts(1, 8, pods(Stage.UNSCHEDULED, words="0/1 nodes are available")))
    assert placed == "Unschedulable"
    assert message == "the pod is released but not scheduled: 0/1 nodes are available"


def test_running() -> None:
    """When all is well the sentence says so."""
    assert told(WorkloadFacts(2, 32, pods(Stage.RUNNING, Stage.RUNNING))) == (
        "2 of 2 pods run, 32 groups each",
        "Admitted",
        "Placed",
    )


def test_starting_failed_and_absent() -> None:
    """What keeps a placed pod from running is told with its words."""
    facts = WorkloadFacts(
        2, 32, (PodFacts("a", Stage.STARTING, "ImagePullBackOff"), PodFacts("b", Stage.FAILED, "OOM"))
    )
    assert told(facts)[0] == "0 of 2 pods run, 32 groups each; 1 starting (a: ImagePullBackOff); 1 failed (b: OOM)"
    assert told(WorkloadFacts(2, 32))[0] == "0 of 2 pods run, 32 groups each; no pod exists yet"
    assert told(WorkloadFacts(0, 32))[0] == "0 of 0 pods run, 32 groups each"


def test_pods_that_end_before_the_next_are_made() -> None:
    """A StatefulSet makes none while the one before is there; on a lost node it says what its end waits for."""
    there = EndingPod("web-0", 32, "2026-01-01T00:02:00Z")
    assert told(WorkloadFacts(1, 32, ending=(there,)))[0] == (
        "0 of 1 pods run, 32 groups each; being deleted: web-0 (grace until 2026-01-01T00:02:00Z)"
    )
    assert told(WorkloadFacts(2, 32, pods(Stage.RUNNING), ending=(replace(there, lost_node="n2"),)))[0] == (
        "1 of 2 pods run, 32 groups each; being deleted: web-0, whose node n2 is not heard of: it ends when that is "
        "back, or when its Node object is deleted"
    )
    assert told(WorkloadFacts(1, 32, pods(Stage.RUNNING), ending=(there,)))[0] == "1 of 1 pods run, 32 groups each"


def test_a_controller_that_rests_and_a_node_that_is_lost() -> None:
    """What is not seen of the pods themselves is said beside their numbers."""
    failed = JobFacts(conditions=(("Failed", "DeadlineExceeded: Job was active longer than specified deadline"),))
    assert told(WorkloadFacts(failed.wanted, 32, resting=failed.why_none))[0] == (
        "0 of 0 pods run, 32 groups each; the Job has failed (DeadlineExceeded: Job was active longer than specified "
        "deadline): it makes no more pods"
    )
    lost = "pod web-0 is on node n2, which is not heard of"
    assert told(WorkloadFacts(1, 32, pods(Stage.RUNNING), lost=lost))[0] == f"1 of 1 pods run, 32 groups each; {lost}"


def test_pods_that_are_done_are_not_missing_nor_there() -> None:
    """Of a Job with five completions, whose third and fourth pod a quota refuses, two are done."""
    facts = WorkloadFacts(2, 32, pods(Stage.DONE, Stage.DONE), DENIED, TEAM_A)
    assert told(facts)[0].startswith("2 of 2 pods cannot be created: needs 32")
    assert "maxSurge" not in told(facts)[0]


def test_crashing() -> None:
    """A container that ends again and again does not run, and is told apart from one that starts."""
    facts = WorkloadFacts(2, 32, (PodFacts("a", Stage.CRASHING, "container vllm ended"), PodFacts("b", Stage.RUNNING)))
    assert told(facts) == (
        "1 of 2 pods run, 32 groups each; 1 crashing (a: container vllm ended)",
        "Admitted",
        "Placed",
    )


def test_long_words_are_cut() -> None:
    """Words of others are cut so that the sentence stays one that can be read."""
    assert len(told(WorkloadFacts(1, 8, (), CreateFailure("x" * 5000)))[0]) < 1000


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


def test_a_gate_that_cannot_be_taken_off() -> None:
    """What keeps a pod that has a node is told before those that wait for room."""
    held = PodFacts("web-1", Stage.HELD, "the API server does not let the operator take its scheduling gate off: 403")
    facts = WorkloadFacts(3, 32, (*pods(Stage.NO_ROOM, words="no room"), held))
    message, admissible, placed = told(facts)
    assert message == (
        "1 of 3 pods cannot be released: the API server does not let the operator take its scheduling gate off: 403"
    )
    assert (admissible, placed) == ("Admitted", "ReleaseRefused")
