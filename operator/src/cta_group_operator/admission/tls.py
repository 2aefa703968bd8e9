"""The TLS side of the endpoint: one context for its whole life, whose certificate changes under it.

New handshakes use the certificate that was loaded last; connections that exist go on with theirs.
"""

import os
import ssl
import tempfile
from pathlib import Path

from cta_group_operator.admission.authority import BadCertificate, KeyPair, read_certificates


class ServingContext:
    """A server's TLS context that can be given another certificate while it serves."""

    def __init__(self) -> None:
        self.context = _server_context()
        self._loaded: KeyPair | None = None

    @property
    def is_loaded(self) -> bool:
        """Tell whether there is a certificate to serve with."""
        return self._loaded is not None

    def load(self, pair: KeyPair) -> float | None:
        """Serve this certificate from now on; return when it ends (Unix seconds), None when it is served already.

        Raises BadCertificate, and then serves what it served before.
        """
        if pair == self._loaded:
            return None
        ends = read_certificates(pair.certificate)[0].ends.timestamp()
        _load_into(_server_context(), pair)  # a pair that does not belong together would spoil the context in use
        _load_into(self.context, pair)
        self._loaded = pair
        return ends


def _server_context() -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


def _load_into(context: ssl.SSLContext, pair: KeyPair) -> None:
    # Python reads certificates from files only; this one is gone before the call returns.
    descriptor, name = tempfile.mkstemp(prefix="cta-group-tls-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(pair.key + b"\n" + pair.certificate)
        context.load_cert_chain(name)
    except ssl.SSLError as bad:
        raise BadCertificate(f"certificate and key cannot be served: {bad}") from bad
    finally:
        Path(name).unlink()
