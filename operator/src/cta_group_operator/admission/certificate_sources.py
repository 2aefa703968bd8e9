"""Where a replica finds the certificate it serves: a Secret that the leader keeps, or somebody else's folder."""

import base64
import binascii
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from cta_group_operator.admission.authority import BadCertificate, KeyPair
from cta_group_operator.errors import NotFound
from cta_group_operator.ports import Json, KubeApi
from cta_group_operator.resources import SECRETS

AUTHORITIES: Final = "ca.crt"
AUTHORITY_KEY: Final = "ca.key"
SERVING: Final = "tls.crt"
SERVING_KEY: Final = "tls.key"


class CertificateSource(Protocol):
    """Gives the certificate to serve now."""

    async def current(self) -> KeyPair | None:
        """Return it, None while there is none; raises BadCertificate, OSError or ApiError when it is not readable."""


@dataclass(frozen=True, slots=True)
class FolderSource:
    """A folder with ``tls.crt`` and ``tls.key``, as cert-manager's CSI driver or a mounted Secret makes it."""

    folder: Path

    async def current(self) -> KeyPair | None:
        """Read both files; they are small and local."""
        files = [self.folder / name for name in (SERVING, SERVING_KEY)]
        if not all(file.exists() for file in files):
            return None
        return KeyPair(*(file.read_bytes() for file in files))


@dataclass(frozen=True, slots=True)
class SecretSource:
    """The Secret that the leader keeps."""

    kube: KubeApi
    namespace: str
    name: str

    async def current(self) -> KeyPair | None:
        """Read the Secret."""
        try:
            secret = await self.kube.get(SECRETS.path(self.namespace, self.name))
        except NotFound:
            return None
        pair = KeyPair(field_of(secret, SERVING), field_of(secret, SERVING_KEY))
        return pair if pair.certificate else None  # the leader waits until its authority is trusted


def field_of(secret: Json, name: str) -> bytes:
    """Return a decoded field of a Secret; raises BadCertificate when it is missing or no base64."""
    try:
        return base64.b64decode((secret.get("data") or {})[name], validate=True)
    except (KeyError, binascii.Error) as bad:
        raise BadCertificate(f"Secret field {name} is missing or not base64") from bad
