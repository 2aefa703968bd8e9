"""The options of ``cta-group-operator``: what they share with the plugin's is in core."""

import re
from pathlib import Path
from typing import ClassVar, Final

from cta_group_core.command_options import CommandOptions, resource_name
from cta_group_core.names import DEFAULT_RESOURCE_NAME, DEFAULT_SCHEDULER
from cta_group_operator.errors import BadSetting


class Options(CommandOptions):
    """Options that the environment may give as ``CTA_GROUP_OPERATOR_<FLAG>``; raises BadSetting for what it gives."""

    prefix: ClassVar = "CTA_GROUP_OPERATOR_"
    bad_setting: ClassVar = BadSetting


_SERVICE_ACCOUNT_NAMESPACE: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
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


def own_namespace(default: str, file: Path = _SERVICE_ACCOUNT_NAMESPACE) -> str:
    """Return the namespace of this pod, ``default`` outside a pod."""
    try:
        return file.read_text().strip() or default
    except OSError:
        return default


def add_what_and_where(options: Options) -> None:
    """Add the options that every command has: the resource, and how to reach the cluster."""
    options.add("--resource-name", resource_name, DEFAULT_RESOURCE_NAME, "resource that pods ask for", "NAME")
    options.add("--kubeconfig", absolute_path, None, "how to reach the API; default: the pod's service account", "FILE")
