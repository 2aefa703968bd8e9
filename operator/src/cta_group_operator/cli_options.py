"""The options of ``cta-group-operator``: what they share with the plugin's is in core."""

import re
from pathlib import Path
from typing import ClassVar, Final

from cta_group_core.command_options import CommandOptions
from cta_group_core.names import DEFAULT_SCHEDULER
from cta_group_operator.errors import BadSetting


class Options(CommandOptions):
    """Options that the environment may give as ``CTA_GROUP_OPERATOR_<FLAG>``; raises BadSetting for what it gives."""

    prefix: ClassVar = "CTA_GROUP_OPERATOR_"
    bad_setting: ClassVar = BadSetting


_OBJECT_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")


def scheduler_names(text: str) -> frozenset[str]:
    """Read names separated by commas; none of them may be the default scheduler's, which honours gates."""
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if not _OBJECT_NAME.fullmatch(name):
            raise ValueError(f"{name!r} is no name of a scheduler: small letters, digits, '-' and '.'")
    if DEFAULT_SCHEDULER in names:
        raise ValueError(f"{DEFAULT_SCHEDULER} honours gates; only name schedulers that do not")
    return frozenset(names)


def absolute_path(text: str) -> Path:
    """Read a path and make it absolute by the process's folder."""
    if not text:
        raise ValueError("must not be empty")
    return Path(text).absolute()
