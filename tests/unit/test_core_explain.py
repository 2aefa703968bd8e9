"""One sentence that answers why a workload is not running, with the numbers."""

from dataclasses import replace

from cta_group_core.ending_pods import EndingPod
from cta_group_core.explain import CreateFailure, PodFacts, Stage, WorkloadFacts
from cta_group_core.jobs import JobFacts
from cta_group_core.rollout import Rollout
from explained import pods, told


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


def test_a_gate_that_cannot_be_taken_off() -> None:
    """What keeps a pod that has a node is told before those that wait for room."""
    held = PodFacts("web-1", Stage.HELD, "the API server does not let the operator take its scheduling gate off: 403")
    facts = WorkloadFacts(3, 32, (*pods(Stage.NO_ROOM, words="no room"), held))
    message, admissible, placed = told(facts)
    assert message == (
        "1 of 3 pods cannot be released: the API server does not let the operator take its scheduling gate off: 403"
    )
    assert (admissible, placed) == ("Admitted", "ReleaseRefused")
