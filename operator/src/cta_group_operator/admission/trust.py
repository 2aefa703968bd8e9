"""Which authorities the API server trusts for the webhooks: read from their configurations, and written there."""

import base64
import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from cta_group_operator.admission.authority import BadCertificate, read_certificates
from cta_group_operator.admission.rotation import Material
from cta_group_operator.errors import NotFound
from cta_group_operator.logs import EventLog
from cta_group_operator.ports import KubeApi
from cta_group_operator.resources import MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS

_log = EventLog(__name__)
CONFIGURATIONS: Final = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
"""Both have the same name. Each replica serves both with one certificate."""


@dataclass(frozen=True, slots=True)
class Registered:
    """One configuration as it was read."""

    path: str
    names: tuple[str, ...]
    """Of its webhooks, in order."""
    bundles: tuple[bytes, ...]
    """What each of them trusts, PEM; empty where it is nothing that can be read."""

    def trusts(self, material: Material) -> bool:
        """Tell whether each webhook trusts every authority of ``material``."""
        wanted = {one.pem for one in material.authorities}
        try:
            return all(wanted <= {one.pem for one in read_certificates(bundle)} for bundle in self.bundles)
        except BadCertificate:
            return False

    def operations(self, bundle: bytes) -> Iterator[dict[str, Any]]:
        """Yield the JSON patch after which each webhook trusts ``bundle``."""
        wanted = base64.b64encode(bundle).decode()
        for index, (name, trusted) in enumerate(zip(self.names, self.bundles, strict=True)):
            if trusted != bundle:
                # The position is only right for the webhook that stood there when it was read.
                yield {"op": "test", "path": f"/webhooks/{index}/name", "value": name}
                yield {"op": "add", "path": f"/webhooks/{index}/clientConfig/caBundle", "value": wanted}


async def registered(kube: KubeApi, name: str) -> list[Registered]:
    """Return the configurations of that name that there are; the chart may have been installed without any."""
    found = []
    for resource in CONFIGURATIONS:
        path = resource.path(name=name)
        try:
            webhooks = (await kube.get(path)).get("webhooks") or []
        except NotFound:
            continue
        bundles = tuple(_decoded(webhook.get("clientConfig", {}).get("caBundle") or "") for webhook in webhooks)
        found.append(Registered(path, tuple(webhook["name"] for webhook in webhooks), bundles))
    return found


async def publish(kube: KubeApi, configuration: Registered, material: Material) -> None:
    """Let every webhook of a configuration trust what ``material`` holds, and nothing else."""
    operations = list(configuration.operations(material.bundle))
    if operations:
        await kube.json_patch(configuration.path, operations)
        _log.info("authorities_published", configuration=configuration.path)


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b""
