"""Which cluster is meant and how it is reached: kubeconfig, or the service account of a pod."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from kubernetes import client, config

from cta_group_cli.errors import ClusterUnavailable

_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
_DEFAULT_KUBECONFIG = "~/.kube/config"

_OTHER_SHAPES = (AttributeError, KeyError, TypeError)
"""What the official loader raises for a file that is YAML and no kubeconfig."""

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Connection:
    """Which cluster is meant."""

    kubeconfig: str | None = None
    """Path, or several joined by colons; None: ``~/.kube/config``, and inside a pod its service account."""
    context: str | None = None
    """Context of the kubeconfig; None: its current one."""
    timeout_seconds: float = 10.0
    """For one answer."""


def configured(connection: Connection) -> tuple[client.Configuration, str]:
    """Return the client's settings and the namespace that is meant when none is said.

    Raises ClusterUnavailable when the kubeconfig cannot be used.
    """
    settings = client.Configuration()
    settings.retries = False  # a cluster that is away is told at once, and not by a log line a try
    where = connection.kubeconfig or _DEFAULT_KUBECONFIG
    try:
        if (connection.kubeconfig, connection.context) == (None, None) and _is_in_pod():
            config.load_incluster_config(client_configuration=settings)
            return settings, _OWN_NAMESPACE.read_text().strip()
        config.load_kube_config(where, connection.context, settings, persist_config=False)
        contexts, current = config.list_kube_config_contexts(where)
    except (config.ConfigException, OSError, ValueError, yaml.YAMLError, *_OTHER_SHAPES) as unusable:
        raise ClusterUnavailable(f"the kubeconfig {where} cannot be used: {unusable}") from unusable
    named = next((entry for entry in contexts if entry["name"] == connection.context), current)
    return settings, str(named["context"].get("namespace") or "default")


def _is_in_pod() -> bool:
    return _OWN_NAMESPACE.exists() and not Path(_DEFAULT_KUBECONFIG).expanduser().exists()
