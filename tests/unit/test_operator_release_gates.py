"""The gates of waiting pods are taken off once and for all, whatever happens to the pods meanwhile."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from cta_group_core.names import GATE_PLACEMENT
from cta_group_operator.cli import main
from cta_group_operator.errors import ApiError, ApiUnavailable, Forbidden, NotFound
from cta_group_operator.ports import Json
from cta_group_operator.release_gates import GateRelease, GateReport, GateSettings
from memory_kube import MemoryKube
from virtual_time import run_in_virtual_time

FAST = GateSettings(timeout_seconds=20, pause_seconds=0.001)
USUAL = GateSettings()
FOREIGN = "example.com/hold"


class PodsInMemory(MemoryKube):
    """A cluster of pods and nodes, listed in pages of two."""

    def __init__(self) -> None:
        super().__init__()
        self.looks = 0
        self.refused_patches: list[ApiError] = []
        """Raised by the next patches, one each."""
        self.hangs_then = False
        """Answer no patch when those are used up."""
        self.nodes: list[Json] = []

    def add_pod(self, name: str, *gates: str, **metadata: Any) -> None:
        """Add a pod that waits for these gates."""
        full = {"namespace": "team-a", "name": name, "uid": f"uid-{name}", **metadata}
        spec = {"schedulingGates": [{"name": gate} for gate in gates]} if gates else {}
        self.put(f"/api/v1/namespaces/team-a/pods/{name}", {"metadata": full, "spec": spec})

    def gates(self, name: str) -> list[str]:
        """Return the gates of a pod."""
        spec = self.objects[f"/api/v1/namespaces/team-a/pods/{name}"]["spec"]
        return [gate["name"] for gate in spec.get("schedulingGates", ())]

    async def get(self, path: str, query: Mapping[str, str] | None = None) -> Json:
        """Return a page of pods or of nodes."""
        if self.failure:
            raise self.failure
        assert query is not None
        start = int(query.get("continue", "0"))
        if path == "/api/v1/nodes":
            found: Sequence[Json] = self.nodes
        else:
            assert query["fieldSelector"] == "spec.nodeName="
            self.looks += start == 0
            found = list(self.objects.values())
        more = {"continue": str(start + 2)} if len(found) > start + 2 else {}
        return {"metadata": more, "items": found[start : start + 2]}

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Patch, unless it is to be refused."""
        if self.refused_patches:
            raise self.refused_patches.pop(0)
        if self.hangs_then:
            await asyncio.Event().wait()
        return await super().json_patch(path, operations)


async def released(api: PodsInMemory, settings: GateSettings = FAST) -> GateReport:
    """Run the release."""
    return await GateRelease(api, settings).run()


async def test_our_gate_goes_and_nothing_else() -> None:
    """Of all waiting pods only the gate of placement is taken off, wherever it stands among others."""
    api = PodsInMemory()
    api.add_pod("a", GATE_PLACEMENT)
    api.add_pod("b", FOREIGN, GATE_PLACEMENT)
    api.add_pod("c", FOREIGN)
    api.add_pod("d")
    api.add_pod("e", GATE_PLACEMENT, FOREIGN)
    report = await released(api)
    assert [api.gates(name) for name in "abcde"] == [[], [FOREIGN], [FOREIGN], [], [FOREIGN]]
    assert report.released == ["team-a/a", "team-a/b", "team-a/e"]
    assert report.is_done


async def test_it_looks_until_nothing_is_seen_twice() -> None:
    """A webhook is asked for a moment after its end, so one look without a gate is not believed."""
    api = PodsInMemory()
    api.add_pod("a", GATE_PLACEMENT)
    assert (await released(api)).is_done
    assert api.looks == 3


async def test_a_refusal_that_passes_is_tried_again() -> None:
    """A policy holds for a moment after its deletion, and the API server may be away."""
    api = PodsInMemory()
    api.add_pod("a", GATE_PLACEMENT)
    api.refused_patches = [Forbidden("policy gate denied the request"), ApiUnavailable("no answer")]
    report = await released(api)
    assert (report.released, report.left, report.problem) == (["team-a/a"], [], "")


def test_pods_that_go_meanwhile_are_not_missed() -> None:
    """A pod that is deleted, or is being deleted, needs no release and is no failure."""
    api = PodsInMemory()
    api.add_pod("going", GATE_PLACEMENT, deletionTimestamp="2026-12-01T00:00:00Z")
    api.add_pod("gone", GATE_PLACEMENT)
    api.refused_patches = [NotFound("no such pod")] * 1000
    report = run_in_virtual_time(released(api, USUAL))
    assert report.released == []
    assert report.left == []


def test_what_is_left_is_told_with_the_reason() -> None:
    """When the time is over the report names the pods and what the API server said."""
    api = PodsInMemory()
    api.add_pod("a", GATE_PLACEMENT)
    api.refused_patches = [Forbidden("only the operator may")] * 1000
    report = run_in_virtual_time(released(api, USUAL))
    assert not report.is_done
    assert "gated still: 1 pod (team-a/a)" in report.words("nvidia.com/cta-group")
    assert "only the operator may" in report.words("nvidia.com/cta-group")


def test_a_look_that_is_cut_short_keeps_the_reason() -> None:
    """The time may be over while an API server that refused before does not answer at all."""
    api = PodsInMemory()
    api.add_pod("a", GATE_PLACEMENT)
    api.refused_patches = [Forbidden("only the operator may")]
    api.hangs_then = True
    report = run_in_virtual_time(released(api, USUAL))
    assert "gated still: 1 pod (team-a/a)" in report.words("nvidia.com/cta-group")
    assert "only the operator may" in report.words("nvidia.com/cta-group")


def test_an_api_server_that_never_answers_is_told() -> None:
    """Nothing was seen, so nothing is claimed."""
    api = PodsInMemory()
    api.failure = ApiUnavailable("GET /api/v1/pods: no answer")
    report = run_in_virtual_time(released(api, USUAL))
    assert not report.is_done
    assert "no answer" in report.words("nvidia.com/cta-group")


async def test_nodes_that_go_on_listing_the_resource_are_named() -> None:
    """Kubelet keeps the name of the resource; the report says where and for how long, however many nodes there are."""
    api = PodsInMemory()
    api.nodes = [
        {"metadata": {"name": "cpu-1"}, "status": {"capacity": {"cpu": "4"}}},
        {"metadata": {"name": "cpu-2"}, "status": {"capacity": {"cpu": "4"}}},
        {"metadata": {"name": "gpu-1"}, "status": {"capacity": {"cpu": "4", "nvidia.com/cta-group": "0"}}},
    ]
    words = (await released(api)).words("nvidia.com/cta-group")
    assert words.splitlines()[0] == f"gate {GATE_PLACEMENT}: taken off 0 pods"
    assert "nvidia.com/cta-group, with nothing to give out, on 1 node (gpu-1)" in words


def test_long_lists_are_cut() -> None:
    """Twenty names are shown; the number says how many there are."""
    words = GateReport(released=[f"ns/{number:02}" for number in range(30)]).words("nvidia.com/cta-group")
    assert "taken off 30 pods (ns/00, " in words
    assert words.endswith("ns/19, ...)")


def test_the_help_says_how_to_call_it(capsys: pytest.CaptureFixture[str]) -> None:
    """Both ways are in the help, to be copied."""
    with pytest.raises(SystemExit) as end:
        main(["release-gates", "--help"])
    told = capsys.readouterr().out
    assert end.value.code == 0
    assert "kubectl -n cta-group exec deploy/cta-group-operator -- cta-group-operator release-gates" in told
    assert "--kubeconfig" in told


def test_a_kubeconfig_that_cannot_be_read_is_bad_input(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit status 2 and a sentence that names the file."""
    assert main(["release-gates", "--kubeconfig=/nowhere/config"]) == 2
    assert "/nowhere/config" in capsys.readouterr().err
