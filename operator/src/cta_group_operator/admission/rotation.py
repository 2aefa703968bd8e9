"""What must be done about the webhook's certificates now: one step at a time, decided from what is there.

A new authority is trusted before it signs, and the old one stays trusted until nothing it signed is in use. So while
a rotation goes on no call of the API server ever fails, whichever replica answers it::

    Secret                              webhook configuration trusts
    old authority, served by old        old
    new + old authority, served by old  new + old          new authority made, two thirds through the old one's life
    new + old authority, served by new  new + old          once the configuration has had time to arrive
    new authority, served by new        new                once every replica has had time to load it

Where the Secret is gone or spoilt it starts over, by the same rule: replicas go on with what they have loaded::

    new + earlier authorities, nothing  new + earlier      those that the configuration still trusts
    new + earlier, served by new        new + earlier      once it has arrived; at once where nothing earlier is trusted
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
    serving: Facts | None = None
    """None while the authority has to be trusted before it signs."""
    serving_key: bytes = b""

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
    """A new authority that has signed nothing yet."""
    NEW_AUTHORITY = "new authority"
    NEW_SERVING = "new serving certificate"
    DROP_OLD = "drop old authorities"


def read_material(authorities: bytes, authority_key: bytes, serving: bytes, serving_key: bytes) -> Material:
    """Return what a Secret holds; raises BadCertificate when a part is missing or does not belong to the others.

    A serving certificate may be missing together with its key.
    """
    trusted = read_certificates(authorities)
    if not trusted:
        raise BadCertificate("the Secret lacks an authority")
    if not belongs(authority_key, trusted[0].pem):
        raise BadCertificate("the authority's key is not that of the first authority")
    if not serving and not serving_key:
        return Material(tuple(trusted), authority_key)
    served = read_certificates(serving)
    if not served or not belongs(serving_key, served[0].pem):
        raise BadCertificate("the serving key is not that of the serving certificate")
    if not any(signed_by(served[0], one) for one in trusted):
        raise BadCertificate("no authority in the Secret signed the serving certificate")
    return Material(tuple(trusted), authority_key, served[0], serving_key)


def next_step(
    material: Material | None, names: Sequence[str], now: datetime, lifetimes: Lifetimes, *, trusted: bool
) -> Step:
    """Decide. ``trusted``: the webhook configuration holds every authority of ``material``."""
    if material is None or material.authorities[0].ends <= now:
        return Step.START_OVER
    newest, serving = material.authorities[0], material.serving
    arrived = trusted and now - newest.made >= timedelta(seconds=lifetimes.propagation_seconds)
    if serving is None:
        first = trusted and len(material.authorities) == 1  # no replica serves what anybody trusts
        return Step.NEW_SERVING if arrived or first else Step.NOTHING
    if serving.ends <= now or not serving.names.issuperset(names):
        return Step.NEW_SERVING
    if newest.life_left(now) < _RENEW_BELOW:
        return Step.NEW_AUTHORITY
    by_newest = signed_by(serving, newest)
    if (not by_newest or serving.life_left(now) < _RENEW_BELOW) and arrived:
        return Step.NEW_SERVING
    old_in_use = not by_newest or now - serving.made < timedelta(seconds=lifetimes.overlap_seconds)
    return Step.DROP_OLD if len(material.authorities) > 1 and not old_in_use else Step.NOTHING


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
    if material is None or step is Step.START_OVER:
        authority = make_authority(now, timedelta(seconds=lifetimes.authority_seconds))
        # Replicas serve what an earlier authority signed until they have loaded the new one.
        trusted = (*read_certificates(authority.certificate), *_still_good(published, now))
        return Material(trusted, authority.key)
    if step is Step.NEW_AUTHORITY:
        authority = make_authority(now, timedelta(seconds=lifetimes.authority_seconds))
        kept = [one for one in material.authorities if one.ends > now]
        trusted = (*read_certificates(authority.certificate), *kept)
        return replace(material, authorities=trusted, authority_key=authority.key)
    if step is Step.NEW_SERVING:
        made = issue(material.signer, names, now, timedelta(seconds=lifetimes.serving_seconds))
        return replace(material, serving=read_certificates(made.certificate)[0], serving_key=made.key)
    return replace(material, authorities=material.authorities[:1])


def _still_good(published: bytes, now: datetime) -> list[Facts]:
    try:
        found = read_certificates(published)
    except BadCertificate:
        return []
    return list({one.pem: one for one in found if one.ends > now and is_ours(one)}.values())
