"""What must be true of every answer to kubelet, said a second time and in other words than the product says it.

Nothing here uses the product's placement, units or ids: a fault there cannot hide itself.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A product, as far as placement depends on it."""

    profile: str
    sms: int
    capacity: int
    minimum: int
    step: int
    memory_mib: int
    """Of all its groups together."""

    def allows(self, groups: int) -> bool:
        """Tell whether one GPU can serve this size."""
        return groups == self.capacity or (self.minimum <= groups < self.capacity and groups % self.step == 0)

    def percent(self, groups: int) -> int:
        """Return the share in whole percent, rounded up: the driver rounds down to pairs of SMs."""
        return -(-100 * groups // self.sms)

    def share_mib(self, groups: int) -> int:
        """Return the memory of a share."""
        return self.memory_mib * groups // self.capacity


KINDS = {
    kind.profile: kind
    for kind in (
        Kind("h100-sxm", sms=132, capacity=128, minimum=8, step=8, memory_mib=0),
        Kind("a100-40", sms=108, capacity=108, minimum=4, step=2, memory_mib=0),
        Kind("t4", sms=40, capacity=40, minimum=2, step=2, memory_mib=0),
    )
}


@dataclass(frozen=True, slots=True)
class Card:
    """One GPU of the node."""

    uuid: str
    index: int
    kind: Kind


def by_card(ids: Iterable[str]) -> dict[str, set[str]]:
    """Sort device ids into the UUIDs in front of their last ``::``."""
    sorted_ids: dict[str, set[str]] = {}
    for each in ids:
        sorted_ids.setdefault(each.rpartition("::")[0], set()).add(each)
    return sorted_ids


def problem_of_set(cards: Mapping[str, Card], ids: Collection[str]) -> str:
    """Return why no container may have exactly these devices; empty when one may."""
    if twice := [each for each, count in Counter(ids).items() if count > 1]:
        return f"named twice: {twice}"
    chosen = by_card(ids)
    if unknown := chosen.keys() - cards.keys():
        return f"unknown GPUs: {sorted(unknown)}"
    if not chosen:
        return "no device"
    if len(chosen) == 1:
        ((uuid, members),) = chosen.items()
        return "" if cards[uuid].kind.allows(len(members)) else f"{len(members)} are not allowed on {uuid}"
    if any(len(members) != cards[uuid].kind.capacity for uuid, members in chosen.items()):
        return f"parts of several GPUs: { ({uuid: len(members) for uuid, members in chosen.items()}) }"
    kinds = {cards[uuid].kind.capacity for uuid in chosen}
    return "" if len(kinds) == 1 else "GPUs of different capacities"


@dataclass(frozen=True, slots=True)
class Expected:
    """What a preference must be."""

    fits: bool
    on: frozenset[str] | None = None
    """The GPUs, where the rule leaves no choice."""


def expected_preference(
    cards: Iterable[Card], available: Iterable[str], kept: Collection[str], groups: int
) -> Expected:
    """Return what must be preferred of the given cards: best fit on one GPU, else whole and entirely free GPUs."""
    cards = tuple(cards)
    free = by_card([*available, *kept])
    held_on = frozenset(by_card(kept))
    if not held_on <= {card.uuid for card in cards} or len(kept) > groups:
        return Expected(fits=False)
    able = [card for card in cards if card.kind.allows(groups)]
    if able:
        fitting = [card for card in able if len(free.get(card.uuid, ())) >= groups]
        if held_on:
            fitting = [card for card in fitting if held_on == {card.uuid}]
        best = min(fitting, key=lambda card: (len(free[card.uuid]), card.index), default=None)
        return Expected(fits=best is not None, on=frozenset({best.uuid}) if best else None)
    return Expected(fits=_several_fit(cards, free, held_on, groups))


def _several_fit(cards: Iterable[Card], free: Mapping[str, set[str]], held_on: frozenset[str], groups: int) -> bool:
    whole = [card for card in cards if len(free.get(card.uuid, ())) == card.kind.capacity]
    counts = Counter(card.kind.capacity for card in whole)
    for capacity, count in counts.items():
        same = {card.uuid for card in whole if card.kind.capacity == capacity}
        if groups % capacity == 0 and count >= groups // capacity >= len(held_on) and held_on <= same:
            return True
    return False
