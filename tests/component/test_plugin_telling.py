"""Events on pods over HTTP, whose UID kubelet's own record tells, and what people write on the node's object."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.checkpoint import CHECKPOINT, KubeletCheckpoint
from cta_group_plugin.adapters.kube_api import KubeNodeApi
from cta_group_plugin.adapters.kube_events import KubeEvents
from cta_group_plugin.errors import ApiRefused, ApiUnavailable
from cta_group_plugin.pod_events import PodEvent
from fake_api_server import FakeApiServer, fake_api_server
from plugin_values import IDLE_REPORT, groups, pod, uuid_of

EVENT = PodEvent(pod("vllm-0"), "uid-1", "GPUUnhealthy", "GPU 0 is unhealthy", key="GPU-0/1.0")


@pytest.fixture
async def server() -> AsyncIterator[FakeApiServer]:
    """Return an API without any event."""
    async with fake_api_server() as api:
        yield api


@pytest.fixture
def events(server: FakeApiServer, tmp_path: Path) -> KubeEvents:
    """Return the adapter of node-a."""
    return KubeEvents(ApiServer(server.url, tmp_path), "node-a")


async def test_event_is_on_its_pod(server: FakeApiServer, events: KubeEvents) -> None:
    """In the pod's namespace, with what ``kubectl describe`` looks for, and who says it."""
    await events.write(EVENT)
    ((name, written),) = server.events.items()
    assert name.startswith("team-a/vllm-0.")
    assert written["involvedObject"] == {
        "apiVersion": "v1",
        "kind": "Pod",
        "namespace": "team-a",
        "name": "vllm-0",
        "uid": "uid-1",
    }
    assert (written["reason"], written["type"], written["message"]) == ("GPUUnhealthy", "Warning", "GPU 0 is unhealthy")
    assert written["source"] == {"component": "cta-group-plugin", "host": "node-a"}


async def test_one_cause_is_one_event_over_all_processes(server: FakeApiServer, tmp_path: Path) -> None:
    """A process that does not remember writes the same name again, and that is no error; another cause is another."""
    for _ in range(2):
        await KubeEvents(ApiServer(server.url, tmp_path), "node-a").write(EVENT)
    assert len(server.events) == 1
    await KubeEvents(ApiServer(server.url, tmp_path), "node-a").write(
        PodEvent(EVENT.pod, EVENT.uid, EVENT.reason, EVENT.message, key="GPU-0/2.0")
    )
    assert len(server.events) == 2


async def test_pod_without_a_known_uid_has_its_event_all_the_same(server: FakeApiServer, events: KubeEvents) -> None:
    """It is found by ``kubectl get events``."""
    await events.write(PodEvent(EVENT.pod, None, EVENT.reason, "x" * 5000, EVENT.key))
    (written,) = server.events.values()
    assert "uid" not in written["involvedObject"]
    assert len(written["message"]) <= 1024


@pytest.mark.parametrize("end", ["-", ".", "-.-", "a"])
async def test_event_on_a_pod_with_a_long_name_has_a_name_that_kubernetes_takes(
    server: FakeApiServer, events: KubeEvents, end: str
) -> None:
    """A name of 253 letters is cut, and no part of what is left may end with a dash."""
    await events.write(PodEvent(pod(f"{'p' * (200 - len(end))}{end}{'q' * 53}"), None, "A", "b", key="c"))
    (name,) = server.events
    parts = name.removeprefix("team-a/").split(".")
    assert all(part and not part.endswith("-") for part in parts)


@pytest.mark.parametrize(("status", "error"), [(503, ApiUnavailable), (429, ApiUnavailable), (403, ApiRefused)])
async def test_refusals_are_told_apart(
    server: FakeApiServer, events: KubeEvents, status: int, error: type[Exception]
) -> None:
    """What may be tried again, and what never will be taken."""
    server.error = status
    with pytest.raises(error, match="told to fail"):
        await events.write(EVENT)


async def test_api_that_does_not_listen_is_unavailable(tmp_path: Path) -> None:
    """Connection refused."""
    with pytest.raises(ApiUnavailable):
        await KubeEvents(ApiServer("http://127.0.0.1:1", tmp_path), "node-a").write(EVENT)


async def test_word_of_a_person_comes_with_each_write(server: FakeApiServer, tmp_path: Path) -> None:
    """The annotation of the object; nothing more has to be read, and no right more is needed."""
    api = KubeNodeApi(ApiServer(server.url, tmp_path), "node-a")
    assert await api.apply(IDLE_REPORT) == ""
    server.annotations["ctagroup.dev/repaired"] = "2026-11-30"
    assert await api.apply(IDLE_REPORT) == "2026-11-30"


def entry(uid: str, ids: Any, resource: str = "nvidia.com/cta-group") -> dict[str, Any]:
    """Return one entry of kubelet's record."""
    return {"PodUID": uid, "ContainerName": "main", "ResourceName": resource, "DeviceIDs": ids, "AllocResp": "x"}


def checkpoint(folder: Path, text: str) -> KubeletCheckpoint:
    """Return a record with this text."""
    (folder / CHECKPOINT).write_text(text)
    return KubeletCheckpoint(folder, "nvidia.com/cta-group")


def test_uid_of_the_pod_that_holds_groups(tmp_path: Path) -> None:
    """By any of its groups; entries of other resources and other forms do not disturb."""
    entries = [
        entry("uid-gpu", {"-1": [f"{uuid_of(0)}::0"]}, resource="nvidia.com/gpu"),
        entry("uid-a", {"-1": [f"{uuid_of(0)}::{number}" for number in range(32)]}),
        entry("uid-b", [f"{uuid_of(1)}::5"]),
        entry("uid-none", None),
        "nonsense",
    ]
    record = checkpoint(tmp_path, json.dumps({"Data": {"PodDeviceEntries": entries}, "Checksum": 1}))
    assert record.uid_of(groups(0, range(16, 48))) == "uid-a"
    assert record.uid_of(groups(1, [5])) == "uid-b"
    assert record.uid_of(groups(1, [6])) is None
    held = {(one.pod_uid, one.container, len(one.ids)) for one in record.pod_devices() or ()}
    assert held == {("uid-a", "main", 32), ("uid-b", "main", 1), ("uid-none", "main", 0)}


def test_record_is_read_again_when_it_changed(tmp_path: Path) -> None:
    """Kubelet puts another file in its place; an unchanged one is not parsed a second time."""
    record = checkpoint(tmp_path, json.dumps({"Data": {"PodDeviceEntries": [entry("uid-a", [f"{uuid_of(0)}::0"])]}}))
    first = record.pod_devices()
    assert first is record.pod_devices()
    changed = tmp_path / "changed"
    changed.write_text(json.dumps({"Data": {"PodDeviceEntries": [entry("uid-b", [f"{uuid_of(0)}::0"])]}}))
    changed.replace(tmp_path / CHECKPOINT)
    assert record.uid_of(groups(0, [0])) == "uid-b"


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"Data": null}', '{"Data": {"PodDeviceEntries": 5}}', "\x00", "[" * 100_000], ids=len
)
def test_record_of_another_form_tells_nothing(tmp_path: Path, text: str) -> None:
    """It is kubelet's own and may change with any release."""
    record = checkpoint(tmp_path, text)
    assert record.uid_of(groups(0, range(8))) is None
    assert record.pod_devices() is None
    assert record.registered() == frozenset()


def test_record_that_is_a_folder_tells_nothing(tmp_path: Path) -> None:
    """Whoever put it there."""
    (tmp_path / CHECKPOINT).mkdir()
    record = KubeletCheckpoint(tmp_path, "nvidia.com/cta-group")
    assert (record.pod_devices(), record.registered()) == (None, frozenset())


def test_record_of_a_kubelet_without_pods_is_understood(tmp_path: Path) -> None:
    """Nobody holds anything, which is another thing than not to know."""
    assert checkpoint(tmp_path, '{"Data": {"PodDeviceEntries": null}}').pod_devices() == ()


def test_record_that_is_not_there_tells_nothing(tmp_path: Path) -> None:
    """As before kubelet's first pod."""
    record = KubeletCheckpoint(tmp_path, "nvidia.com/cta-group")
    assert (record.pod_devices(), record.uid_of(groups(0, [0]))) == (None, None)
