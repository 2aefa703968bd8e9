"""Where the API server is and how to prove who we are, read by the official client's own loaders."""

import ssl
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kubernetes import config as loaders
from kubernetes.client import Configuration

from cta_group_operator.errors import BadSetting


@dataclass(frozen=True, slots=True)
class Connection:
    """One API server and the identity to use there."""

    configuration: Any
    """The official client's Configuration: it refreshes a service account's token when the file changed."""

    @property
    def server(self) -> str:
        """``https://host:port``."""
        return str(self.configuration.host).rstrip("/")

    @property
    def verifies(self) -> bool:
        """Whether the server's certificate is checked."""
        return bool(self.configuration.verify_ssl)

    @property
    def authority_file(self) -> str | None:
        """File with the certificate authority."""
        return self.configuration.ssl_ca_cert or None

    @property
    def certificate_files(self) -> tuple[str | None, str | None]:
        """Client certificate and key."""
        return self.configuration.cert_file or None, self.configuration.key_file or None

    def authorization(self) -> str | None:
        """Return the value of the Authorization header now; None when the certificate is the identity."""
        header = self.configuration.get_api_key_with_prefix("BearerToken")
        if not header:
            return None
        scheme, _, token = str(header).partition(" ")
        return f"{scheme.capitalize()} {token.strip()}"

    def ssl_context(self) -> ssl.SSLContext:
        """Return what TLS connections to the server use."""
        context = ssl.create_default_context(cafile=self.authority_file)
        if not self.verifies:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        certificate, key = self.certificate_files
        if certificate:
            context.load_cert_chain(certificate, key)
        return context


def load_connection(kubeconfig: Path | None) -> Connection:
    """Read a kubeconfig, or the service account of this pod when there is none; raises BadSetting naming the file."""
    configuration = Configuration()
    try:
        if kubeconfig is None:
            loaders.load_incluster_config(client_configuration=configuration)
        else:
            loaders.load_kube_config(str(kubeconfig), client_configuration=configuration)
    except (loaders.ConfigException, OSError, ValueError) as bad:
        source = "the pod's service account" if kubeconfig is None else f"kubeconfig {kubeconfig}"
        raise BadSetting(f"cannot reach the Kubernetes API by {source}: {bad}") from bad
    return Connection(configuration)
