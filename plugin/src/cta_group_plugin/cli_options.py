"""The options of ``cta-group-plugin``: what they share with the operator's is in core."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from cta_group_core.command_options import CommandOptions, listen_address, one_of, resource_name, whole_number
from cta_group_plugin.errors import BadSetting

__all__ = [
    "Options",
    "absolute_path",
    "api_server_url",
    "cdi_kind",
    "listen_address",
    "one_of",
    "own_api_server",
    "resource_name",
    "whole_number",
]


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
    if not text or text.startswith(("https://", "http://")):
        return text.rstrip("/")
    raise ValueError("must look like https://host:port")


def own_api_server(environment: Mapping[str, str]) -> str:
    """Return the API of the cluster that started this process as a pod; empty outside a pod."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST"), environment.get("KUBERNETES_SERVICE_PORT", "443")
    return f"https://[{host}]:{port}" if host and ":" in host else f"https://{host}:{port}" if host else ""
