"""Whose a process on a GPU is, at one look: tenants, who left their limits, who has no business there."""

from dataclasses import replace

import pytest

from cta_group_plugin.gpu_source import ProcessFacts
from cta_group_plugin.occupants import Kind, Place, occupants_of
from cta_group_plugin.pod_cgroups import PodOfProcess
from gpu_looks import Program, look

TENANT, OTHER = "11111111-1111-4111-8111-111111111111", "22222222-2222-4222-8222-222222222222"
SHARED = Place(pods={TENANT: False}, is_limited=True, clients={7}, clients_are_told=True)
WHOLE = replace(SHARED, pods={TENANT: True}, clients=())


def kind_of(program: Program, place: Place = SHARED) -> Kind:
    """Return whose a program is."""
    (found,) = occupants_of(look(0, program), place)
    return found.kind


@pytest.mark.parametrize(
    ("program", "kind"),
    [
        (Program(7, pod_uid=TENANT, in_mps=True), Kind.TENANT),
        (Program(8, pod_uid=TENANT, in_mps=False), Kind.UNLIMITED),
        (Program(8, pod_uid=TENANT, in_mps=True), Kind.UNLIMITED),
        (Program(8, pod_uid=TENANT, memory_mib=0, in_mps=True), Kind.TENANT),
        (Program(8, pod_uid=TENANT, memory_mib=None), Kind.UNLIMITED),
        (Program(8, pod_uid=TENANT, name="nvidia-cuda-mps"), Kind.UNLIMITED),
        (Program(8, pod_uid=OTHER), Kind.FOREIGN),
        (Program(8), Kind.FOREIGN),
        (Program(9, name="nvidia-cuda-mps"), Kind.MPS),
        (Program(7, pod_uid=OTHER, in_mps=True), Kind.TENANT),
        (Program(8, is_visible=False), Kind.ENDED),
        (Program(8, pod_uid=TENANT, has_ended=True), Kind.ENDED),
        (Program(0, is_visible=False), Kind.ENDED),
    ],
)
def test_processes_of_a_shared_gpu(program: Program, kind: Kind) -> None:
    """A client of the GPU's daemon keeps limits; one of another daemon, or of none, with a context, does not.

    Who calls itself as MPS does is believed only outside of the pods that hold groups.
    """
    assert kind_of(program) is kind


def test_a_tenant_of_a_whole_gpu_needs_no_daemon() -> None:
    """It has no limits to keep; whoever else is there is foreign."""
    assert kind_of(Program(8, pod_uid=TENANT), WHOLE) is Kind.TENANT
    assert kind_of(Program(8, pod_uid=OTHER), WHOLE) is Kind.FOREIGN


def test_nobody_leaves_limits_that_are_switched_off() -> None:
    """Without MPS every tenant is as it should be, and strangers are still told."""
    place = replace(SHARED, is_limited=False)
    assert kind_of(Program(8, pod_uid=TENANT), place) is Kind.TENANT
    assert kind_of(Program(8, pod_uid=OTHER), place) is Kind.FOREIGN


def test_a_daemon_that_does_not_tell_accuses_nobody_whom_the_driver_calls_a_client() -> None:
    """Whoever the driver does not call one is outside MPS all the same."""
    place = replace(SHARED, clients_are_told=False)
    assert kind_of(Program(8, pod_uid=TENANT, in_mps=True), place) is Kind.UNDECIDED
    assert kind_of(Program(8, pod_uid=TENANT, in_mps=False), place) is Kind.UNLIMITED


def test_a_driver_that_knows_no_clients_leaves_them_to_the_daemon() -> None:
    """Nobody is accused by such a driver alone, and everybody is told apart once the daemon answers."""
    there = look(0, Program(8, pod_uid=TENANT))
    unsaid = replace(there, use=replace(there.use, lists_clients=False))
    away = replace(SHARED, clients_are_told=False)
    assert [one.kind for one in occupants_of(unsaid, away)] == [Kind.UNDECIDED]
    assert [one.kind for one in occupants_of(unsaid, SHARED)] == [Kind.UNLIMITED]


def test_without_kubelets_record_nobody_is_accused() -> None:
    """Only clients of the daemon, and MPS itself, are known then."""
    place = replace(SHARED, pods=None)
    assert kind_of(Program(7, pod_uid=TENANT, in_mps=True), place) is Kind.TENANT
    assert kind_of(Program(9, name="nvidia-cuda-mps"), place) is Kind.MPS
    assert kind_of(Program(8, pod_uid=TENANT), place) is Kind.UNDECIDED
    assert kind_of(Program(8), place) is Kind.UNDECIDED


def test_a_process_of_a_pod_that_nobody_knows_is_left_open() -> None:
    """It may be a tenant of the whole GPU, where kubelet makes no cgroups for pods; a client is one all the same."""
    nameless = {pid: ProcessFacts(1, "python3", pod=PodOfProcess(None, "c" * 64)) for pid in (7, 8)}
    there = replace(look(0, Program(7, in_mps=True), Program(8)), processes=nameless)
    assert [one.kind for one in occupants_of(there, SHARED)] == [Kind.TENANT, Kind.UNDECIDED]


def test_a_process_of_another_namespace_is_not_taken_for_one_that_ended() -> None:
    """Where not all of the machine's processes are in sight, an id of 0 is of somebody who may live."""
    (found,) = occupants_of(look(0, Program(0, is_visible=False), sees_all=False), SHARED)
    assert found.kind is Kind.UNSEEN
    blind = replace(look(0, Program(8)), processes=None)
    assert [one.kind for one in occupants_of(blind, SHARED)] == [Kind.UNSEEN]
