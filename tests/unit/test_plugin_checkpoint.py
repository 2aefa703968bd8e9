"""What kubelet's record tells beside the UIDs of pods: which GPUs the ids of a container mean, and all ids it knows."""

import json
from base64 import b64encode
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from cta_group_core.ids import GpuUuid, GroupId
from cta_group_plugin.adapters.checkpoint import CHECKPOINT, KubeletCheckpoint
from cta_group_plugin.answers import CdiRules, Rules, answer_for
from cta_group_plugin.encoding import encoded
from plugin_values import RULES, groups, offer, uuid_of

RESOURCE = "nvidia.com/cta-group"
CDI = Rules(RULES.enforcement, RULES.mps_root, RULES.max_clients, CdiRules())
NODE = offer(3)


def answer(ids: Iterable[GroupId], rules: Rules) -> str:
    """Return our answer for these groups, as kubelet keeps it."""
    held = frozenset(ids)
    gpus = [gpu for gpu in NODE.served if gpu.facts.uuid in {one.gpu for one in held}]
    return b64encode(encoded(answer_for(gpus, held, rules)).SerializeToString()).decode()


def record(folder: Path, *, kept: Any = "", registered: Any = None) -> KubeletCheckpoint:
    """Return kubelet's record with one container, and the answer that kubelet keeps for it."""
    entry = {
        "PodUID": "uid-a",
        "ContainerName": "main",
        "ResourceName": RESOURCE,
        "DeviceIDs": {"-1": ["g0-000"]},
        "AllocResp": kept,
    }
    (folder / CHECKPOINT).write_text(
        json.dumps({"Data": {"PodDeviceEntries": [entry], "RegisteredDevices": registered}, "Checksum": 1})
    )
    return KubeletCheckpoint(folder, RESOURCE)


def gpus_of(made: KubeletCheckpoint) -> tuple[GpuUuid, ...]:
    """Return the GPUs of the one container."""
    (container,) = made.pod_devices() or ()
    return container.gpus


@pytest.mark.parametrize("rules", [RULES, CDI], ids=["envvar", "cdi"])
def test_answer_that_kubelet_keeps_names_the_gpus(tmp_path: Path, rules: Rules) -> None:
    """By environment or by CDI devices, of a part of one GPU and of whole ones, in order of their index."""
    part, whole = groups(1, range(32)), groups(2, range(128)) | groups(0, range(128))
    assert gpus_of(record(tmp_path, kept=answer(part, rules))) == (uuid_of(1),)
    assert gpus_of(record(tmp_path, kept=answer(whole, rules))) == (uuid_of(0), uuid_of(2))


@pytest.mark.parametrize("kept", ["", None, 7, "no base64", b64encode(b"no message").decode()])
def test_answer_that_nobody_understands_names_none(tmp_path: Path, kept: Any) -> None:
    """The container is told all the same."""
    assert gpus_of(record(tmp_path, kept=kept)) == ()


def test_every_id_that_kubelet_was_told_is_known(tmp_path: Path) -> None:
    """Held or not; those of other resources are not ours."""
    devices = {RESOURCE: ["g0-000", "g0-001"], "nvidia.com/gpu": ["0"]}
    assert record(tmp_path, registered=devices).registered() == {"g0-000", "g0-001"}


@pytest.mark.parametrize("registered", [None, [], {}, {RESOURCE: None}])
def test_record_without_registered_ids_knows_none(tmp_path: Path, registered: Any) -> None:
    """As before a plugin came, or when kubelet's file has another form."""
    assert record(tmp_path, registered=registered).registered() == frozenset()


def test_record_that_is_not_there_knows_none(tmp_path: Path) -> None:
    """As on a node that is new."""
    assert KubeletCheckpoint(tmp_path, RESOURCE).registered() == frozenset()
