"""Kubeconfig files that hold everything in themselves, so that they may be copied anywhere."""

import base64
from pathlib import Path
from typing import Any

import yaml

from cluster_harness.certs import KeyPair

_NAME = "cta-group"


def write_kubeconfig(path: Path, server: str, authority: Path, user: KeyPair) -> Path:
    """Write a kubeconfig for ``user`` at the API server ``server``, readable by the owner only; return its path."""
    content: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": server, "certificate-authority-data": _encoded(authority)}}],
        "users": [
            {
                "name": _NAME,
                "user": {
                    "client-certificate-data": _encoded(user.certificate),
                    "client-key-data": _encoded(user.key),
                },
            }
        ],
        "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": _NAME,
    }
    path.touch(mode=0o600)
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    return path


def _encoded(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
