"""The options of ``cta-group-plugin``: what they share with the operator's is in core."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

from cta_group_core.command_options import CommandOptions, listen_address, one_of, resource_name, whole_number
from cta_group_plugin.errors import BadSetting

__all__ = [
    "Options",
    "absolute_path",
    "api_server_url",
    "cdi_kind",
    "listen_address",
    "node_name",
    "one_of",
    "own_api_server",
    "resource_name",
    "whole_number",
]


_LONGEST_NAME: Final = 253
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?")


class Options(CommandOptions):
    """Options that the environment may give as ``CTA_GROUP_PLUGIN_<FLAG>``; raises BadSetting for what it gives."""

    prefix: ClassVar = "CTA_GROUP_PLUGIN_"
    bad_setting: ClassVar = BadSetting


def absolute_path(text: str) -> Path:
    """Read a path and make it absolute: a socket is found by its path from anywhere."""
    if not text:
        raise ValueError("must not be empty")
    return Path(text).absolute()


def cdi_kind(text: str) -> str:
    """Check the kind of CDI devices, ``vendor.com/class``, or nothing at all."""
    if not text or re.fullmatch(
        r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?/[A-Za-z0-9]([A-Za-z0-9_-]*[A-Za-z0-9])?", text
    ):
        return text
    raise ValueError("must look like nvidia.com/gpu, or be empty")


def api_server_url(text: str) -> str:
    """Check the URL of an API server; empty is none."""
    try:
        url = urlsplit(text)
        is_one = url.scheme in {"http", "https"} and url.hostname and url.port != 0 and not (url.query or url.fragment)
    except ValueError:  # a port or an address that is none
        is_one = False
    if not text or (is_one and text.isascii() and text.isprintable() and " " not in text):
        return text.rstrip("/")
    raise ValueError("must look like https://host:port")


def node_name(text: str) -> str:
    """Check the form of a node's name in Kubernetes, a DNS subdomain."""
    if len(text) <= _LONGEST_NAME and all(map(_LABEL.fullmatch, text.split("."))):
        return text
    raise ValueError(
        f"must be the node's name in Kubernetes: lower case letters, digits, dashes and dots, {_LONGEST_NAME} at most"
    )


def own_api_server(environment: Mapping[str, str]) -> str:
    """Return the API of the cluster that started this process as a pod; empty outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://[{host}]:{port}" if host and ":" in host else f"https://{host}:{port}" if host else ""
