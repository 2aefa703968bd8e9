"""The webhook's Secret is gone or spoilt: it is made anew, and no call fails meanwhile."""

import base64
from collections.abc import Sequence
from dataclasses import replace

import pytest

from admission_running import Conversation, SetClock
from certificate_keeping import HOUR, SECRET, SETTINGS, call, clock, conversation, keeper, kube, trusted
from cta_group_operator.admission.certificates import CertificateKeeper
from cta_group_operator.admission.rotation import Step
from cta_group_operator.ports import Json
from memory_kube import MemoryKube

__all__ = ["clock", "conversation", "keeper", "kube"]


class AskedAtEachWrite(MemoryKube):
    """An API server that asks a replica before and after it looks at the Secret, whenever something was written."""

    def __init__(self, kube: MemoryKube, conversation: Conversation) -> None:
        super().__init__()
        self.objects = kube.objects
        self._conversation = conversation
        self.asked = 0

    async def create(self, path: str, body: Json) -> Json:
        """Ask afterwards."""
        return await self._ask(await super().create(path, body))

    async def update(self, path: str, body: Json) -> Json:
        """Ask afterwards."""
        return await self._ask(await super().update(path, body))

    async def json_patch(self, path: str, operations: Sequence[Json]) -> Json:
        """Ask afterwards."""
        return await self._ask(await super().json_patch(path, operations))

    async def _ask(self, written: Json) -> Json:
        await call(self._conversation, self)
        await self._conversation.server.refresh()
        await call(self._conversation, self)
        self.asked += 1
        return written


@pytest.mark.parametrize("spoilt", ["", "tls.key", "tls.crt", "ca.key", "ca.crt"])
async def test_a_secret_that_is_gone_or_spoilt_heals_and_no_call_fails(
    kube: MemoryKube, conversation: Conversation, spoilt: str
) -> None:
    """The new authority is trusted by both configurations before anything is served that it signed."""
    clock = SetClock(ago_seconds=5 * HOUR)
    keeper = CertificateKeeper(kube, SETTINGS, clock)
    await keeper.round()
    await conversation.server.refresh()
    first = trusted(kube)
    if spoilt:
        kube.objects[SECRET]["data"][spoilt] = base64.b64encode(b"mine").decode()
    else:
        del kube.objects[SECRET]
    asking = AskedAtEachWrite(kube, conversation)
    healing, steps = replace(keeper, kube=asking), []
    for _ in range(4):
        steps.append(await healing.round())
        clock.pass_seconds(HOUR + 1)
    assert steps == [Step.START_OVER, Step.NEW_SERVING, Step.DROP_OLD, Step.NOTHING]
    assert asking.asked == 7  # the Secret three times, the configurations before and after
    assert first not in trusted(kube)


async def test_a_leader_that_ends_while_it_starts_over_is_gone_on_from(
    kube: MemoryKube, keeper: CertificateKeeper, clock: SetClock
) -> None:
    """Its authority is in the Secret and nowhere trusted: the next one publishes it, and signs when it has arrived."""
    await keeper.round()
    secret, before = kube.objects.pop(SECRET), dict(kube.objects)
    await keeper.round()
    kube.objects.update(before)
    assert kube.objects[SECRET]["data"]["tls.crt"] == ""
    clock.pass_seconds(HOUR + 1)
    assert await keeper.round() is Step.NOTHING
    assert base64.b64decode(secret["data"]["ca.crt"]) in trusted(kube)
    assert await keeper.round() is Step.NEW_SERVING
    assert base64.b64decode(kube.objects[SECRET]["data"]["ca.crt"]) == trusted(kube)
