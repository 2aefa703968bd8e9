"""The options of ``cta-group-operator``: what they share with the plugin's is in core."""

from pathlib import Path
from typing import ClassVar

from cta_group_core.command_options import CommandOptions
from cta_group_operator.errors import BadSetting


class Options(CommandOptions):
    """Options that the environment may give as ``CTA_GROUP_OPERATOR_<FLAG>``; raises BadSetting for what it gives."""

    prefix: ClassVar = "CTA_GROUP_OPERATOR_"
    bad_setting: ClassVar = BadSetting


def absolute_path(text: str) -> Path:
    """Read a path and make it absolute by the process's folder."""
    if not text:
        raise ValueError("must not be empty")
    return Path(text).absolute()
