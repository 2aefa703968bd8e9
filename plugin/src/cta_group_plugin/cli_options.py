"""The options of ``cta-group-plugin``: what they share with the operator's is in core."""

import re
from pathlib import Path
from typing import ClassVar

from cta_group_core.command_options import CommandOptions, listen_address, one_of, resource_name, whole_number
from cta_group_plugin.errors import BadSetting

__all__ = ["Options", "absolute_path", "cdi_kind", "listen_address", "one_of", "resource_name", "whole_number"]


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
