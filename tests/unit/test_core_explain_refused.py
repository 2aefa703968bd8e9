"""The sentence about pods that cannot be created, with the numbers of the quota that refuses them."""

from cta_group_core.denials import Denial
from cta_group_core.ending_pods import EndingPod
from cta_group_core.explain import CreateFailure, Stage, WorkloadFacts
from cta_group_core.explain_quota import QuotaFacts
from explained import pods, told

TEAM_A = QuotaFacts("team-a", groups=256, used=240, share=256, share_used=240)
DENIED = CreateFailure("...", Denial("cta-group", needs=32, used=240, limit=256))


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


def test_room_elsewhere_that_cannot_be_moved() -> None:
    """Where the API server takes no limit, it does not come in a moment: whose word that is is told."""
    why = "PATCH /api/v1/namespaces/b/resourcequotas/cta-group: 403 no"
    quota = QuotaFacts("team-a", groups=256, used=128, share=128, share_used=128, namespaces=2, obstacle=why)
    message, admissible, _ = told(WorkloadFacts(1, 32, (), DENIED, quota))
    assert admissible == "QuotaNotMoved"
    assert message == (
        "the pod cannot be created: needs 32, and CTAQuota team-a has 128 of 256 left, which cannot be moved to this "
        f"namespace (its part is 128, used 128): {why}"
    )


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


def test_pods_that_are_done_are_not_missing_nor_there() -> None:
    """Of a Job with five completions, whose third and fourth pod a quota refuses, two are done."""
    facts = WorkloadFacts(2, 32, pods(Stage.DONE, Stage.DONE), DENIED, TEAM_A)
    assert told(facts)[0].startswith("2 of 2 pods cannot be created: needs 32")
    assert "maxSurge" not in told(facts)[0]
