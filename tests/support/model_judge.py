"""Stands between kubelet and the plugin and judges each answer at once, by other rules than the plugin's own."""

import asyncio
from collections.abc import Mapping, Sequence

from cta_group_plugin.health import is_out
from cta_group_plugin.kubelet_api import deviceplugin_v1beta1_pb2 as api
from cta_group_plugin.testing.kubelet_model import Refused
from model_plugin import ModelPlugin
from model_rules import Card, by_card, expected_preference, problem_of_set

_CALL_SECONDS = 0.002
"""What one call of kubelet takes; two of them are never at the same moment."""


class Judge:
    """The plugin as kubelet calls it; each answer is judged by other rules than its own."""

    def __init__(self, plugin: ModelPlugin, cards: Mapping[str, Card], wrong: list[str], *, is_strict: bool) -> None:
        """Write what is wrong into ``wrong``. Not strict: a refusal may have a reason that the rules do not know."""
        self._plugin = plugin
        self._cards = cards
        self._wrong = wrong
        self._is_strict = is_strict

    async def prefer(self, request: api.ContainerPreferredAllocationRequest) -> list[str]:
        """Call GetPreferredAllocation; its answer must be the best fit, and an error the only way."""
        await asyncio.sleep(_CALL_SECONDS)
        groups, kept = request.allocation_size, list(request.must_include_deviceIDs)
        sound, usable = self._open_cards(sound=True), self._open_cards(sound=False)
        expected = expected_preference(sound, request.available_deviceIDs, kept, groups)
        if not expected.fits:
            expected = expected_preference(usable, request.available_deviceIDs, kept, groups)
        try:
            chosen = await self._plugin.prefer(request)
        except Refused as refused:
            if expected.fits and self._is_strict:
                self._wrong.append(f"{groups} groups beside {kept} fit on {expected.on}, but: {refused}")
            raise
        self._judge_preference(request, chosen, on=expected.on)
        if not expected.fits:
            self._wrong.append(f"{groups} groups fit nowhere, but {sorted(by_card(chosen))} was preferred")
        return chosen

    async def allocate(self, ids: Sequence[str]) -> api.ContainerAllocateResponse:
        """Call Allocate; what it accepts must be a share that can be, and what can be must be accepted."""
        await asyncio.sleep(_CALL_SECONDS)
        problem = problem_of_set({card.uuid: card for card in self._open_cards(sound=False)}, ids)
        try:
            answer = await self._plugin.allocate(ids)
        except Refused as refused:
            if not problem and self._is_strict:
                self._wrong.append(f"Allocate refused {sorted(ids)}: {refused}")
            raise
        if problem:
            self._wrong.append(f"Allocate gave {sorted(ids)}: {problem}")
        else:
            self._judge_answer(answer.envs, ids)
        return answer

    async def start(self, ids: Sequence[str]) -> None:
        """Call PreStartContainer; whether its limits are in force then is looked at with every step."""
        await asyncio.sleep(_CALL_SECONDS)
        await self._plugin.start(ids)

    def _open_cards(self, *, sound: bool) -> list[Card]:
        view = self._plugin.state.view
        return [
            self._cards[uuid]
            for uuid in view.offer.by_uuid
            if not (is_out(view.faults.get(uuid)) or (sound and uuid in view.faults))
        ]

    def _judge_preference(
        self, request: api.ContainerPreferredAllocationRequest, chosen: Sequence[str], *, on: frozenset[str] | None
    ) -> None:
        offered = {*request.available_deviceIDs, *request.must_include_deviceIDs}
        problems = [
            problem_of_set(self._cards, chosen),
            "" if len(chosen) == request.allocation_size else f"{len(chosen)} of {request.allocation_size} groups",
            "" if {*request.must_include_deviceIDs} <= {*chosen} else "devices to include are left out",
            "" if {*chosen} <= offered else "devices that were not offered",
            "" if not self._is_strict or on is None or on == {*by_card(chosen)} else f"best would be {sorted(on)}",
        ]
        self._wrong += [f"preferred {sorted(by_card(chosen))}: {problem}" for problem in problems if problem]

    def _judge_answer(self, environment: Mapping[str, str], ids: Sequence[str]) -> None:
        on = by_card(ids)
        told = environment["NVIDIA_VISIBLE_DEVICES"].split(",")
        if sorted(told) != sorted(on) or environment["CTA_GROUP_COUNT"] != str(len(ids)):
            self._wrong.append(f"{sorted(on)} with {len(ids)} groups got {dict(environment)}")
        percent = environment.get("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE")
        card = self._cards[next(iter(on))]
        is_part = len(on) == 1 and len(ids) < card.kind.capacity
        if percent != (str(card.kind.percent(len(ids))) if is_part else None):
            self._wrong.append(f"{len(ids)} groups of {card.uuid} got {percent} %")
