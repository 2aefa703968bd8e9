"""Which cluster and namespace are meant, and what is made of objects that cannot be read."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from cta_group_cli.adapters.connection import Connection, configured
from cta_group_cli.adapters.kubernetes_reader import _node, _ours
from cta_group_cli.errors import ClusterUnavailable
from cta_group_cli.ports import Node, Unreadable


@pytest.fixture
def kubeconfig(tmp_path: Path) -> str:
    """Write a kubeconfig with two contexts, of which the first is current and only the second names a namespace."""
    path = tmp_path / "config"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": f"https://{name}.example.com"}} for name in ("one", "two")],
        "users": [{"name": "me", "user": {"token": "secret"}}],
        "contexts": [
            {"name": "one", "context": {"cluster": "one", "user": "me"}},
            {"name": "two", "context": {"cluster": "two", "user": "me", "namespace": "team-a"}},
        ],
        "current-context": "one",
    }
    path.write_text(yaml.safe_dump(content))
    return str(path)


def test_current_context_is_the_default(kubeconfig: str) -> None:
    """Without a context the current one is meant, and without a namespace in it ``default``."""
    settings, namespace = configured(Connection(kubeconfig))
    assert (settings.host, namespace) == ("https://one.example.com", "default")


def test_named_context_brings_its_namespace(kubeconfig: str) -> None:
    """A context that is named decides about cluster and namespace."""
    settings, namespace = configured(Connection(kubeconfig, "two"))
    assert (settings.host, namespace) == ("https://two.example.com", "team-a")


@pytest.mark.parametrize("content", [None, "", "[", "some text", "[a]", "a: b", "apiVersion: v1\nkind: Config\n"])
def test_kubeconfig_that_is_none(tmp_path: Path, content: str | None) -> None:
    """A kubeconfig that is missing, empty, broken or without contexts is an error that names the file."""
    path = tmp_path / "config"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ClusterUnavailable, match=f"the kubeconfig {path} cannot be used"):
        configured(Connection(str(path)))


def test_unknown_context_is_named(kubeconfig: str) -> None:
    """A context that the kubeconfig does not have is an error that names it."""
    with pytest.raises(ClusterUnavailable, match="three"):
        configured(Connection(kubeconfig, "three"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [({"health": "Sleepy"}, "gpus.0.health: Input should be"), ({"step": 0}, "gpus.0: Value error, .*step=0")],
)
def test_object_of_another_form_is_told_by_its_field(change: dict[str, Any], problem: str) -> None:
    """A node that cannot be read gives its name and the field, and does not stop the command."""
    gpu = {"uuid": "GPU-1", "index": 0, "product": "x", "computeCapability": "9.0", "smCount": 132}
    gpu |= {"capacity": 128, "minimum": 8, "step": 8}
    item = {"metadata": {"name": "a"}, "status": {"resourceName": "nvidia.com/cta-group", "gpus": [gpu]}}
    assert isinstance(_ours(item, _node), Node)
    item = {**item, "status": {"resourceName": "nvidia.com/cta-group", "gpus": [{**gpu, **change}]}}
    told = _ours(item, _node)
    assert isinstance(told, Unreadable)
    assert told.name == "a"
    assert re.match(problem, told.problem)
