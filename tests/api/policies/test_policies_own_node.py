"""The plugin of a node writes that node's CTANode and no other."""

from collections.abc import Iterator

import pytest

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cta_group_core.names import API_GROUP_VERSION, FIELD_MANAGER_PLUGIN
from cta_group_core.nodes import NodeStatus
from kubectl import Kubectl

_ACCOUNT = "/api/v1/namespaces/cta-group/serviceaccounts/cta-group-plugin/token"
_CTANODES = f"/apis/{API_GROUP_VERSION}/ctanodes"


def _ctanode(name: str) -> Json:
    return {"apiVersion": API_GROUP_VERSION, "kind": "CTANode", "metadata": {"name": name}}


def _status(name: str) -> Json:
    return _ctanode(name) | {"status": NodeStatus(resource_name="nvidia.com/cta-group").as_api()}


@pytest.fixture
def plugin(
    policies: None,  # noqa: ARG001 - needed for what it does
    control_plane: ControlPlane,
    api: ApiClient,
) -> Iterator[Kubectl]:
    """Return kubectl with the token that a plugin on node own-a gets."""
    node = api.create("/api/v1/nodes", {"metadata": {"name": "own-a"}})["metadata"]
    bound = {"kind": "Node", "apiVersion": "v1", "name": "own-a", "uid": node["uid"]}
    token = api.create(_ACCOUNT, {"spec": {"audiences": [], "boundObjectRef": bound}})["status"]["token"]
    yield Kubectl.with_token(control_plane, token)
    api.delete("/api/v1/nodes/own-a")
    for made in api.items(_CTANODES):
        api.delete(f"{_CTANODES}/{made['metadata']['name']}")


def test_it_creates_and_updates_its_own_object(plugin: Kubectl, api: ApiClient) -> None:
    """Server-side apply of the object and of its status, again and again, with the chart's rights alone."""
    for _ in range(2):
        plugin.apply(_ctanode("own-a"), manager=FIELD_MANAGER_PLUGIN, extra=["--validate=false"])
        plugin.apply(_status("own-a"), manager=FIELD_MANAGER_PLUGIN, extra=["--validate=false", "--subresource=status"])
    assert api.get(f"{_CTANODES}/own-a")["status"]["resourceName"] == "nvidia.com/cta-group"


def test_it_may_not_write_another_node_s(plugin: Kubectl, api: ApiClient) -> None:
    """Neither created nor changed: a node that was taken over cannot lie about others."""
    words = "the plugin of node own-a may write the CTANode own-a only, not own-b"
    api.create(_CTANODES, _ctanode("own-b"))
    for made, extra in ((_ctanode("own-b"), []), (_status("own-b"), ["--subresource=status"]), (_ctanode("own-c"), [])):
        command = ("apply", "--server-side", "--field-manager=x", "--validate=false", *extra, "-f", "-")
        done = plugin.run(*command, objects=[made])
        assert done.returncode != 0
        assert words.replace("own-b", made["metadata"]["name"]) in done.stderr
    assert api.find(f"{_CTANODES}/own-c") is None


def test_a_generated_name_is_no_way_around(plugin: Kubectl) -> None:
    """The policy sees the name that the server made."""
    made = _ctanode("x") | {"metadata": {"generateName": "own-a-"}}
    done = plugin.run("create", "--validate=false", "-f", "-", objects=[made])
    assert "may write the CTANode own-a only, not own-a-" in done.stderr


@pytest.mark.usefixtures("plugin")
def test_a_token_without_a_node_may_write_nothing(control_plane: ControlPlane, api: ApiClient) -> None:
    """A token that somebody made by hand for the account is not a plugin on a node."""
    token = api.create(_ACCOUNT, {"spec": {"audiences": []}})["status"]["token"]
    stray = Kubectl.with_token(control_plane, token)
    done = stray.run("create", "--validate=false", "-f", "-", objects=[_ctanode("own-a")])
    assert "the plugin's token is bound to no node (claim authentication.kubernetes.io/node-name)" in done.stderr


def test_it_may_do_nothing_else(plugin: Kubectl) -> None:
    """Its role gives it its CTANode; it lists nothing, deletes nothing, and sees no pod and no secret."""
    for verb, resource in (("delete", "ctanodes"), ("list", "ctanodes"), ("list", "pods"), ("get", "secrets")):
        assert plugin.run("auth", "can-i", verb, resource, "--all-namespaces").stdout.strip() == "no"


@pytest.mark.usefixtures("plugin")
def test_other_writers_are_not_its_business(api: ApiClient) -> None:
    """Whom roles let write CTANodes, such as an administrator that cleans up, may go on."""
    api.create(_CTANODES, _ctanode("own-d"))
    api.delete(f"{_CTANODES}/own-d")
