"""What must be done about the webhook's certificates now: one step at a time, decided from what is there.

A new authority is trusted before it signs, and the old one stays trusted until nothing it signed is in use. So while
a rotation goes on no call of the API server ever fails, whichever replica answers it::

    Secret                              webhook configuration trusts
    old authority, served by old        old
    new + old authority, served by old  new + old          new authority made, two thirds through the old one's life
    new + old authority, served by new  new + old          once the configuration has had time to arrive
    new authority, served by new        new                once every replica has had time to load it
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import Enum

from cta_group_operator.admission.authority import (
    BadCertificate,
    Facts,
    KeyPair,
    belongs,
    is_ours,
    issue,
    make_authority,
    read_certificates,
    signed_by,
)
from cta_group_operator.settings import Lifetimes

_RENEW_BELOW = 1 / 3


@dataclass(frozen=True, slots=True)
class Material:
    """What the Secret holds. Whoever trusts every authority in it trusts what is served."""

    authorities: tuple[Facts, ...]
    """Newest first; the first one signs."""
    authority_key: bytes
    serving: Facts
    serving_key: bytes

    @property
    def bundle(self) -> bytes:
        """The authorities to trust, PEM."""
        return b"".join(one.pem for one in self.authorities)

    @property
    def signer(self) -> KeyPair:
        """The authority that signs."""
        return KeyPair(self.authorities[0].pem, self.authority_key)


class Step(Enum):
    """What to do next."""

    NOTHING = "nothing"
    START_OVER = "start over"
    """A new authority and a new serving certificate at once."""
    NEW_AUTHORITY = "new authority"
    NEW_SERVING = "new serving certificate"
    DROP_OLD = "drop old authorities"


def read_material(authorities: bytes, authority_key: bytes, serving: bytes, serving_key: bytes) -> Material:
    """Return what a Secret holds; raises BadCertificate when a part is missing or does not belong to the others."""
    trusted, served = read_certificates(authorities), read_certificates(serving)
    if not trusted or not served:
        raise BadCertificate("the Secret lacks a certificate")
    material = Material(tuple(trusted), authority_key, served[0], serving_key)
    if not belongs(authority_key, trusted[0].pem):
        raise BadCertificate("the authority's key is not that of the first authority")
    if not belongs(serving_key, served[0].pem):
        raise BadCertificate("the serving key is not that of the serving certificate")
    if not any(signed_by(served[0], one) for one in trusted):
        raise BadCertificate("no authority in the Secret signed the serving certificate")
    return material


def next_step(
    material: Material | None, names: Sequence[str], now: datetime, lifetimes: Lifetimes, *, trusted: bool
) -> Step:
    """Decide. ``trusted``: the webhook configuration holds every authority of ``material``."""
    if material is None or material.authorities[0].ends <= now:
        return Step.START_OVER
    newest, serving = material.authorities[0], material.serving
    if serving.ends <= now or not serving.names.issuperset(names):
        return Step.NEW_SERVING
    if newest.life_left(now) < _RENEW_BELOW:
        return Step.NEW_AUTHORITY
    arrived = trusted and now - newest.made >= timedelta(seconds=lifetimes.propagation_seconds)
    by_newest = signed_by(serving, newest)
    if (not by_newest or serving.life_left(now) < _RENEW_BELOW) and arrived:
        return Step.NEW_SERVING
    old_in_use = not by_newest or now - serving.made < timedelta(seconds=lifetimes.overlap_seconds)
    if len(material.authorities) > 1 and not old_in_use:
        return Step.DROP_OLD
    return Step.NOTHING


def take_step(
    step: Step,
    material: Material | None,
    names: Sequence[str],
    now: datetime,
    lifetimes: Lifetimes,
    *,
    published: bytes = b"",
) -> Material:
    """Return what the Secret must hold after a step other than NOTHING. ``published``: what is trusted now, PEM."""
    serving_life = timedelta(seconds=lifetimes.serving_seconds)
    if material is None or step is Step.START_OVER:
        authority = make_authority(now, timedelta(seconds=lifetimes.authority_seconds))
        # Replicas serve what an earlier authority signed until they have loaded the new one.
        trusted = (*read_certificates(authority.certificate), *_still_good(published, now))
        return _with_serving(trusted, authority.key, issue(authority, names, now, serving_life))
    if step is Step.NEW_AUTHORITY:
        authority = make_authority(now, timedelta(seconds=lifetimes.authority_seconds))
        kept = [one for one in material.authorities if one.ends > now]
        trusted = (*read_certificates(authority.certificate), *kept)
        return replace(material, authorities=trusted, authority_key=authority.key)
    if step is Step.NEW_SERVING:
        made = issue(material.signer, names, now, serving_life)
        return _with_serving(material.authorities, material.authority_key, made)
    return replace(material, authorities=material.authorities[:1])


def _with_serving(authorities: tuple[Facts, ...], authority_key: bytes, made: KeyPair) -> Material:
    return Material(authorities, authority_key, read_certificates(made.certificate)[0], made.key)


def _still_good(published: bytes, now: datetime) -> list[Facts]:
    try:
        found = read_certificates(published)
    except BadCertificate:
        return []
    return list({one.pem: one for one in found if one.ends > now and is_ours(one)}.values())
