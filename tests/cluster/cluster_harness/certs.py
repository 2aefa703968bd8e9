"""Certificates and keys of a cluster, signed by a certificate authority of its own, valid for a month.

Elliptic keys are used throughout: making one takes a millisecond.
"""

import ipaddress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from cluster_harness.errors import HarnessError

_VALID = timedelta(days=30)
_CLOCK_SLACK = timedelta(hours=1)
_AUTHORITY_USAGE = x509.KeyUsage(
    digital_signature=True,
    key_cert_sign=True,
    crl_sign=True,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    encipher_only=False,
    decipher_only=False,
)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The files of a certificate and its private key."""

    certificate: Path
    key: Path

    @classmethod
    def named(cls, folder: Path, name: str) -> Self:
        """Return where an authority puts the files of that name."""
        return cls(folder / f"{name}.crt", folder / f"{name}.key")


class Authority:
    """A certificate authority; writes what it signs into one folder, readable by the owner only.

    It is the one whose own files are in that folder already, or a new one.
    """

    def __init__(self, folder: Path, name: str = "ca") -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self.files = KeyPair.named(folder, name)
        self._name = _name(f"cta-group test {name}", ())
        if self.files.key.exists():
            self._key = _read_key(self.files.key)
            self.certificate = x509.load_pem_x509_certificate(self.files.certificate.read_bytes())
            return
        self._key = ec.generate_private_key(ec.SECP256R1())
        builder = self._certificate(self._name, self._key.public_key())
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        builder = builder.add_extension(_AUTHORITY_USAGE, critical=True)
        self.certificate = builder.sign(self._key, hashes.SHA256())
        _write(folder, name, self.certificate, self._key)

    def sign(
        self, file_name: str, common_name: str, groups: tuple[str, ...] = (), hosts: tuple[str, ...] = ()
    ) -> KeyPair:
        """Make a key pair for the user ``common_name`` in ``groups``, which also serves as ``hosts``.

        ``hosts`` are DNS names and IP addresses; without any the certificate is a client's only.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        builder = self._certificate(_name(common_name, groups), key.public_key())
        usages = [ExtendedKeyUsageOID.CLIENT_AUTH, *([ExtendedKeyUsageOID.SERVER_AUTH] if hosts else [])]
        builder = builder.add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        if hosts:
            builder = builder.add_extension(
                x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
            )
        return _write(self._folder, file_name, builder.sign(self._key, hashes.SHA256()), key)

    def _certificate(self, subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        """Return what every certificate has; strict verifiers want both key identifiers."""
        now = datetime.now(UTC)
        builder = x509.CertificateBuilder(
            issuer_name=self._name,
            subject_name=subject,
            public_key=public,
            serial_number=x509.random_serial_number(),
            not_valid_before=now - _CLOCK_SLACK,
            not_valid_after=now + _VALID,
        )
        authority = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
        return builder.add_extension(authority, critical=False)


def _read_key(path: Path) -> ec.EllipticCurvePrivateKey:
    key = serialization.load_pem_private_key(path.read_bytes(), password=None)
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise HarnessError(f"{path} holds no elliptic key, as every authority of a cluster has")
    return key


def write_signing_key(path: Path) -> Path:
    """Write a private key for service account tokens and return its path."""
    _write_private(path, _pem(ec.generate_private_key(ec.SECP256R1())))
    return path


def _name(common_name: str, groups: tuple[str, ...]) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _write(folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> KeyPair:
    files = KeyPair.named(folder, name)
    files.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    _write_private(files.key, _pem(key))
    return files


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )


def _write_private(path: Path, data: bytes) -> None:
    path.touch(mode=0o600)
    path.write_bytes(data)
