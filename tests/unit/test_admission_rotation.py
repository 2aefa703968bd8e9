"""The steps by which the webhook's certificates are made and renewed."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cta_group_operator.admission.authority import (
    BadCertificate,
    Facts,
    issue,
    make_authority,
    read_certificates,
    signed_by,
)
from cta_group_operator.admission.rotation import Material, Step, next_step, read_material, take_step
from cta_group_operator.settings import Lifetimes

NAMES = ("operator.cta-group", "operator.cta-group.svc", "operator.cta-group.svc.cluster.local")
START = datetime(2026, 6, 1, tzinfo=UTC)
SHORT = Lifetimes(authority_seconds=3600, serving_seconds=600, propagation_seconds=30, overlap_seconds=60)


def made(now: datetime = START, lifetimes: Lifetimes = SHORT) -> Material:
    """Return what the first round makes."""
    begun = take_step(Step.START_OVER, None, NAMES, now, lifetimes)
    return take_step(Step.NEW_SERVING, begun, NAMES, now, lifetimes)


def served_by(material: Material) -> Facts:
    """Return what is served, where something is."""
    assert material.serving is not None
    return material.serving


def after(seconds: float) -> datetime:
    """Return a moment after the start."""
    return START + timedelta(seconds=seconds)


def step(material: Material | None, now: datetime, *, trusted: bool = True, names: tuple[str, ...] = NAMES) -> Step:
    """Return the next step."""
    return next_step(material, names, now, SHORT, trusted=trusted)


def test_with_nothing_there_everything_is_made() -> None:
    """The serving certificate is signed by the authority, good for all names, and needs nothing more."""
    assert step(None, START) is Step.START_OVER
    begun = take_step(Step.START_OVER, None, NAMES, START, SHORT)
    assert step(begun, START, trusted=False) is Step.NOTHING
    assert step(begun, START) is Step.NEW_SERVING
    material = made()
    assert signed_by(served_by(material), material.authorities[0])
    assert served_by(material).names == frozenset(NAMES)
    assert step(material, START, trusted=False) is Step.NOTHING


def test_what_is_made_can_be_read_back() -> None:
    """The four fields of the Secret belong together."""
    material = made()
    read = read_material(material.bundle, material.authority_key, served_by(material).pem, material.serving_key)
    assert read == material
    begun = take_step(Step.START_OVER, None, NAMES, START, SHORT)
    assert read_material(begun.bundle, begun.authority_key, b"", b"") == begun


@pytest.mark.parametrize("field", ["authorities", "authority_key", "serving", "serving_key"])
@pytest.mark.parametrize("text", [b"", b"nonsense", "another"])
def test_a_secret_whose_parts_do_not_belong_together_is_not_used(field: str, text: bytes | str) -> None:
    """Whoever edited it: it is made anew instead of served."""
    material, other = made(), made()
    parts = {
        "authorities": material.bundle,
        "authority_key": material.authority_key,
        "serving": served_by(material).pem,
        "serving_key": material.serving_key,
    }
    others = {
        "authorities": other.bundle,
        "authority_key": other.authority_key,
        "serving": served_by(other).pem,
        "serving_key": other.serving_key,
    }
    parts[field] = text if isinstance(text, bytes) else others[field]
    with pytest.raises(BadCertificate):
        read_material(**parts)


def test_the_serving_certificate_is_renewed_after_two_thirds_of_its_life() -> None:
    """By the same authority, and nothing else changes."""
    material = made()
    assert step(material, after(399)) is Step.NOTHING
    assert step(material, after(401)) is Step.NEW_SERVING
    renewed = take_step(Step.NEW_SERVING, material, NAMES, after(401), SHORT)
    assert renewed.authorities == material.authorities
    assert served_by(renewed).ends == after(1001)
    assert step(renewed, after(401)) is Step.NOTHING


def test_a_new_authority_is_trusted_before_it_signs_and_the_old_one_until_nobody_uses_it() -> None:
    """The whole rotation, step by step."""
    material = take_step(Step.NEW_SERVING, made(), NAMES, after(2395), SHORT)
    assert step(material, after(2401)) is Step.NEW_AUTHORITY
    both = take_step(Step.NEW_AUTHORITY, material, NAMES, after(2401), SHORT)
    old, new = material.authorities[0], both.authorities[0]
    assert both.authorities == (new, old)
    assert both.serving == material.serving
    assert step(both, after(2500), trusted=False) is Step.NOTHING
    assert step(both, after(2430)) is Step.NOTHING
    assert step(both, after(2432)) is Step.NEW_SERVING
    served = take_step(Step.NEW_SERVING, both, NAMES, after(2432), SHORT)
    assert signed_by(served_by(served), new)
    assert step(served, after(2491)) is Step.NOTHING
    assert step(served, after(2493)) is Step.DROP_OLD
    done = take_step(Step.DROP_OLD, served, NAMES, after(2493), SHORT)
    assert done.authorities == (new,)
    assert step(done, after(2493)) is Step.NOTHING


def test_other_names_mean_another_serving_certificate() -> None:
    """A renamed Service is served under its new name at once."""
    assert step(made(), START, names=("other.cta-group.svc",)) is Step.NEW_SERVING


def test_an_ended_authority_means_starting_over() -> None:
    """After a year switched off there is nothing to go on from."""
    assert step(made(), after(3601)) is Step.START_OVER


def test_starting_over_keeps_trust_in_what_other_replicas_still_serve() -> None:
    """A deleted Secret: authorities of ours in the configuration stay trusted, foreign and ended ones do not."""
    before, ended = made(), made(START - timedelta(days=1))
    foreign = ssl.DER_cert_to_PEM_cert(b"0").encode()
    published = before.bundle + ended.bundle
    again = take_step(Step.START_OVER, None, NAMES, after(5), SHORT, published=published)
    assert again.authorities[1:] == before.authorities
    assert step(again, after(34)) is Step.NOTHING
    assert step(again, after(36), trusted=False) is Step.NOTHING
    assert step(again, after(36)) is Step.NEW_SERVING
    alone = take_step(Step.START_OVER, None, NAMES, after(5), SHORT, published=foreign)
    assert len(alone.authorities) == 1


def test_a_serving_certificate_never_outlives_its_authority() -> None:
    """Trust would end before the certificate does."""
    authority = make_authority(START, timedelta(hours=1))
    served = issue(authority, ["127.0.0.1"], START, timedelta(days=1))
    assert read_certificates(served.certificate)[0].ends == after(3600)
    assert read_certificates(served.certificate)[0].names == {"127.0.0.1"}


@settings(max_examples=20, deadline=None)
@given(
    pauses=st.lists(st.integers(1, 400), min_size=5, max_size=30),
    seen=st.lists(st.booleans(), min_size=30, max_size=30),
    gone=st.lists(st.integers(0, 5).map(lambda drawn: drawn == 0), min_size=30, max_size=30),
)
def test_what_replicas_serve_is_trusted_at_every_moment(pauses: list[int], seen: list[bool], gone: list[bool]) -> None:
    """However long rounds are apart, although replicas load late, and whenever the Secret is deleted.

    A replica that does not look keeps the certificate of the round before; the configuration is as old as that too.
    What has ended is served by nobody whom that could disturb: all that it was signed by has ended, or was off.
    """
    now = START
    material = made()
    loaded, trusted = served_by(material), material.authorities
    for pause, loads, is_gone in zip(pauses, seen, gone, strict=False):
        now += timedelta(seconds=pause)
        before, kept = material, None if is_gone else material
        found = next_step(kept, NAMES, now, SHORT, trusted=trusted == material.authorities)
        if found is not Step.NOTHING:
            published = b"".join(one.pem for one in trusted)
            material = take_step(found, kept, NAMES, now, SHORT, published=published)
        # At its slowest a replica loads what the round before left, and the configuration arrives within a round.
        loaded = (material if loads else before).serving or loaded
        assert loaded.ends <= now or any(signed_by(loaded, authority) for authority in trusted)
        trusted = material.authorities
        assert loaded.ends <= now or any(signed_by(loaded, authority) for authority in trusted)
