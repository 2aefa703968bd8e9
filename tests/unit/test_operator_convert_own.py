"""CTANode and CTAWorkload as the API server writes them."""

from typing import Any

import msgspec
import pytest
from pydantic import ValidationError

from cta_group_operator.adapters import wire_own
from cta_group_operator.adapters.convert_own import cta_node, workload
from cta_group_operator.ports import ObjectRef

_META = {"name": "one", "namespace": "team-a", "uid": "uid-one", "resourceVersion": "7"}


def told(**fields: Any) -> wire_own.Told:
    """Return an object as it is decoded from a list or a watch."""
    return msgspec.json.decode(msgspec.json.encode({"metadata": _META, **fields}), type=wire_own.Told)


@pytest.mark.parametrize("fields", [{}, {"status": None}, {"status": {}}])
def test_a_node_whose_plugin_has_told_nothing_is_none(fields: dict[str, Any]) -> None:
    """A CTANode is made before its plugin writes a status."""
    assert cta_node(told(**fields)) is None
    assert workload(told(**fields)).status is None


def test_a_status_is_read_by_its_names_in_the_api() -> None:
    """Camel case, and whatever a newer version adds is passed over."""
    gpu = {"uuid": "GPU-a", "index": 0, "product": "H100", "computeCapability": "9.0", "memoryMiB": 81559, "new": [{}]}
    node = cta_node(told(status={"resourceName": "nvidia.com/cta-group", "nodeUID": "u", "gpus": [gpu]}))
    assert node is not None
    assert (node.name, node.resource_version, node.status.node_uid) == ("one", "7", "u")
    assert [(one.compute_capability, one.memory_mib) for one in node.status.gpus] == [("9.0", 81559)]


def test_an_explanation_knows_whom_it_explains() -> None:
    """By the uid of its owner; one that a person made has none."""
    owner = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
    status = {"owner": owner, "message": "runs", "groupsPerPod": 8}
    found = workload(told(status=status))
    assert found.status is not None
    assert (found.owner_uid, found.status.message, found.status.groups_per_pod) == ("", "runs", 8)
    assert found.ref == ObjectRef("ctagroup.dev/v1alpha1", "CTAWorkload", "team-a", "one", "uid-one")
    owned = msgspec.json.encode({"metadata": {**_META, "ownerReferences": [{**owner, "uid": "uid-web"}]}})
    assert workload(msgspec.json.decode(owned, type=wire_own.Told)).owner_uid == "uid-web"


def test_what_cannot_be_read_names_the_field() -> None:
    """So that the log says what is wrong with the object."""
    with pytest.raises(ValidationError, match="resourceName"):
        cta_node(told(status={"gpus": []}))
