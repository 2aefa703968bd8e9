"""Making and reading certificates: an authority of our own and the serving certificate that it signs."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_NAME: Final = "cta-group webhook authority"
BACKDATE: Final = timedelta(minutes=5)
"""Certificates begin this long before they are made: clocks of API servers differ."""

_LARGEST_COMMON_NAME: Final = 64


class BadCertificate(ValueError):
    """Text that holds no usable certificate or key."""


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, PEM."""

    certificate: bytes
    key: bytes


@dataclass(frozen=True, slots=True)
class Facts:
    """What decisions need to know about a certificate."""

    pem: bytes
    made: datetime
    ends: datetime
    names: frozenset[str]
    """DNS names and addresses that it is good for."""

    def life_left(self, now: datetime) -> float:
        """Return the share of its life that is left, below 0 when it has ended."""
        return (self.ends - now) / (self.ends - self.made)


def make_authority(now: datetime, lifetime: timedelta) -> KeyPair:
    """Make a certificate that signs others, and itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, AUTHORITY_NAME)])
    usage = x509.KeyUsage(
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
    builder = (
        _builder(name, name, key.public_key(), now, now + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )
    return KeyPair(_pem(builder.sign(key, hashes.SHA256())), _key_pem(key))


def issue(authority: KeyPair, names: Sequence[str], now: datetime, lifetime: timedelta) -> KeyPair:
    """Make a serving certificate for DNS names and addresses; it never outlives its authority."""
    signer = _load_key(authority.key)
    issuer = _load(authority.certificate)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0][:_LARGEST_COMMON_NAME])])
    ends = min(now + lifetime, issuer.not_valid_after_utc)
    builder = (
        _builder(subject, issuer.subject, key.public_key(), now, ends)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
    )
    return KeyPair(_pem(builder.sign(signer, hashes.SHA256())), _key_pem(key))


def read_certificates(bundle: bytes) -> list[Facts]:
    """Return the certificates of a PEM bundle in their order; raises BadCertificate."""
    try:
        return [_facts(one) for one in x509.load_pem_x509_certificates(bundle)]
    except ValueError as bad:
        raise BadCertificate(f"no certificate in PEM form: {bad}") from bad


def is_ours(certificate: Facts) -> bool:
    """Tell whether an authority was made by :func:`make_authority`, by its name."""
    names = _load(certificate.pem).subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return [name.value for name in names] == [AUTHORITY_NAME]


def signed_by(certificate: Facts, authority: Facts) -> bool:
    """Tell whether the authority's key signed the certificate."""
    try:
        _load(certificate.pem).verify_directly_issued_by(_load(authority.pem))
    except (InvalidSignature, ValueError, TypeError):
        return False
    return True


def belongs(key: bytes, certificate: bytes) -> bool:
    """Tell whether a private key is the certificate's."""
    try:
        return _load_key(key).public_key() == _load(certificate).public_key()
    except (BadCertificate, ValueError):
        return False


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, ends: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATE)
        .not_valid_after(ends)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _facts(certificate: x509.Certificate) -> Facts:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        found = [*names.get_values_for_type(x509.DNSName), *map(str, names.get_values_for_type(x509.IPAddress))]
    except x509.ExtensionNotFound:
        found = []
    return Facts(
        pem=_pem(certificate),
        made=certificate.not_valid_before_utc + BACKDATE,
        ends=certificate.not_valid_after_utc,
        names=frozenset(found),
    )


def _load(certificate: bytes) -> x509.Certificate:
    try:
        return x509.load_pem_x509_certificate(certificate)
    except ValueError as bad:
        raise BadCertificate(f"no certificate in PEM form: {bad}") from bad


def _load_key(key: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        loaded = serialization.load_pem_private_key(key, password=None)
    except (ValueError, TypeError) as bad:
        raise BadCertificate(f"no private key in PEM form: {bad}") from bad
    if not isinstance(loaded, ec.EllipticCurvePrivateKey):
        raise BadCertificate("the private key is of a kind that is not made here")
    return loaded


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
