"""The leader keeps the webhook's certificates; replicas load them; no call fails while they change."""

from collections.abc import Sequence

import pytest

from admission_running import Conversation, SetClock
from certificate_keeping import (
    CONFIGURATION,
    HOUR,
    REFUSING,
    SECRET,
    SETTINGS,
    call,
    clock,
    conversation,
    keeper,
    kube,
    trusted,
)
from cta_group_operator.admission.certificates import CertificateKeeper
from cta_group_operator.admission.rotation import Step
from cta_group_operator.errors import ApiUnavailable, Conflict, Forbidden
from cta_group_operator.ports import Json
from memory_kube import MemoryKube

__all__ = ["clock", "conversation", "keeper", "kube"]


async def test_the_first_round_makes_everything(
    kube: MemoryKube, keeper: CertificateKeeper, conversation: Conversation
) -> None:
    """Secret and configuration are written, and a replica answers under the Service's name."""
    assert await keeper.round() is Step.START_OVER
    assert trusted(kube, 0) == trusted(kube, 1) == trusted(kube, path=REFUSING)
    await conversation.server.refresh()
    await call(conversation, kube)


async def test_a_round_with_nothing_to_do_writes_nothing(kube: MemoryKube, keeper: CertificateKeeper) -> None:
    """Otherwise every write would wake every watcher for ever."""
    await keeper.round()
    written = len(kube.writes)
    assert await keeper.round() is Step.NOTHING
    assert len(kube.writes) == written


async def test_no_call_fails_during_a_whole_rotation(kube: MemoryKube, conversation: Conversation) -> None:
    """A call before and after the replica loads, in every step until the old authority is gone."""
    clock = SetClock(ago_seconds=61_000_000)
    keeper = CertificateKeeper(kube, SETTINGS, clock)
    await keeper.round()
    clock.pass_seconds(60_500_000)  # past two thirds of the authority's life
    assert await keeper.round() is Step.NEW_SERVING  # what was served ended meanwhile
    await conversation.server.refresh()
    first, steps = trusted(kube), []
    for _ in range(8):
        steps.append(await keeper.round())
        await call(conversation, kube)
        await conversation.server.refresh()
        await call(conversation, kube)
        clock.pass_seconds(HOUR + 1)
    assert steps[:4] == [Step.NEW_AUTHORITY, Step.NEW_SERVING, Step.DROP_OLD, Step.NOTHING]
    assert set(steps[4:]) == {Step.NOTHING}
    assert first not in trusted(kube)


@pytest.mark.parametrize("text", ["", "bm9uc2Vuc2U=", "not base64"])
async def test_a_foreign_authority_in_the_configuration_is_replaced(
    kube: MemoryKube, keeper: CertificateKeeper, text: str
) -> None:
    """In the next round, and the Secret is not touched for it."""
    await keeper.round()
    wanted, secret = trusted(kube), dict(kube.objects[SECRET])
    kube.objects[CONFIGURATION]["webhooks"][1]["clientConfig"]["caBundle"] = text
    await keeper.round()
    assert trusted(kube, 1) == wanted
    assert kube.objects[SECRET] == secret


async def test_what_only_one_configuration_trusts_is_not_dropped(kube: MemoryKube) -> None:
    """A new authority signs when both trust it: the API server asks the same replicas by both."""
    clock = SetClock(ago_seconds=61_000_000)
    keeper = CertificateKeeper(kube, SETTINGS, clock)
    await keeper.round()
    clock.pass_seconds(60_500_000)
    assert [await keeper.round(), await keeper.round()] == [Step.NEW_SERVING, Step.NEW_AUTHORITY]
    both = trusted(kube)
    kube.objects[REFUSING]["webhooks"][0]["clientConfig"]["caBundle"] = ""
    clock.pass_seconds(HOUR + 1)
    assert await keeper.round() is Step.NOTHING  # not published everywhere: that comes first
    assert trusted(kube, path=REFUSING) == both
    assert await keeper.round() is Step.NEW_SERVING


async def test_without_a_configuration_only_the_secret_is_kept(keeper: CertificateKeeper, kube: MemoryKube) -> None:
    """The chart may have been installed without the webhook."""
    del kube.objects[CONFIGURATION], kube.objects[REFUSING]
    await keeper.round()
    assert list(kube.objects) == [SECRET]


async def test_a_round_that_is_cut_short_is_finished_by_the_next(kube: MemoryKube, keeper: CertificateKeeper) -> None:
    """The Secret was written and the configuration was not: a leader that ended in between."""
    await keeper.round()
    webhook = kube.objects[CONFIGURATION]["webhooks"][0]
    wanted = webhook["clientConfig"].pop("caBundle")
    assert await keeper.round() is Step.NOTHING
    assert kube.objects[CONFIGURATION]["webhooks"][0]["clientConfig"]["caBundle"] == wanted


class GuardedKube(MemoryKube):
    """An API server where a policy guards the first configuration."""

    def __init__(self, kube: MemoryKube) -> None:
        super().__init__()
        self.objects = kube.objects

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Refuse to change it."""
        if path == CONFIGURATION:
            raise Forbidden("403: guarded")
        return await super().json_patch(path, operations)


async def test_a_configuration_that_cannot_be_written_keeps_no_other_from_it(kube: MemoryKube, clock: SetClock) -> None:
    """The other one trusts what is served all the same, and that one could not be written is raised."""
    keeper = CertificateKeeper(GuardedKube(kube), SETTINGS, clock)
    with pytest.raises(Forbidden):
        await keeper.round()
    assert trusted(kube, path=REFUSING)


class OvertakenKube(MemoryKube):
    """An API server where another leader does a whole round just before the first create arrives."""

    def __init__(self, kube: MemoryKube, other: CertificateKeeper) -> None:
        super().__init__()
        self.objects = kube.objects
        self._other: CertificateKeeper | None = other

    async def create(self, path: str, body: Json) -> Json:
        """Let the other one be first, once."""
        other, self._other = self._other, None
        if other is not None:
            await other.round()
        return await super().create(path, body)


async def test_two_leaders_at_once_do_not_mix_their_certificates(kube: MemoryKube, clock: SetClock) -> None:
    """The later write is refused, and its writer goes on from what is there."""
    overtaken = OvertakenKube(kube, CertificateKeeper(kube, SETTINGS, clock))
    late = CertificateKeeper(overtaken, SETTINGS, clock)
    with pytest.raises(Conflict):
        await late.round()
    before = dict(kube.objects[SECRET])
    assert await late.round() is Step.NOTHING
    assert kube.objects[SECRET] == before


async def test_an_api_server_that_is_away_leaves_everything_as_it_is(
    kube: MemoryKube, keeper: CertificateKeeper, conversation: Conversation
) -> None:
    """Replicas go on serving what they have loaded."""
    await keeper.round()
    await conversation.server.refresh()
    kube.failure = ApiUnavailable("away for the test")
    with pytest.raises(ApiUnavailable):
        await keeper.round()
    await conversation.server.refresh()
    await call(conversation, kube)
