"""What nodes say to a pod, and all of it together in one sentence when none can take it."""

from collections.abc import Sequence
from dataclasses import dataclass

from cta_group_core.ids import NodeName

_NODES_TOLD = 3
Rank = tuple[int, int, int, int, int, int, str]
"""What decides between nodes, as the head of :mod:`cta_group_core.node_choice` says. Smaller is better."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one node says to one pod."""

    node: NodeName
    rank: Rank | None
    """None when the pod can not be released there."""
    why_not: str = ""
    has_gpu: bool = True
    """False when the node is out of question for another reason than its GPUs."""
    ever: bool = True
    """False when no GPU there could serve the request even if it were empty."""
    largest: int = 0


def refusal_words(requests: Sequence[int], verdicts: Sequence[Verdict]) -> str:
    """Return why no node takes a pod with these requests: first those whose GPUs are the reason, the roomiest first."""
    asked = " + ".join(str(groups) for groups in requests)
    if not verdicts:
        return f"asked for {asked} groups, but no node offers any: no CTANode is published (is the plugin running?)"
    by_gpu = _told(sorted((one for one in verdicts if one.has_gpu), key=lambda one: (-one.largest, one.node)))
    others = _told(sorted((one for one in verdicts if not one.has_gpu), key=lambda one: one.node))
    parts = [f"asked for {asked} groups, but no node has room"] if by_gpu else [f"asked for {asked} groups"]
    parts += [by_gpu] if by_gpu else []
    parts += [f"out of the question: {others}"] if others else []
    return "; ".join(parts) if not by_gpu else f"{parts[0]}: {'; '.join(parts[1:])}"


def _told(verdicts: Sequence[Verdict]) -> str:
    """Name the nodes, those that say the same together, at most three sayings."""
    by_words: dict[str, list[str]] = {}
    for one in verdicts:
        by_words.setdefault(one.why_not, []).append(one.node)
    sayings = [f"{_names(nodes)}: {words}" for words, nodes in list(by_words.items())[:_NODES_TOLD]]
    hidden = sum(len(nodes) for nodes in list(by_words.values())[_NODES_TOLD:])
    return "; ".join(sayings) + (f"; and {hidden} more nodes" if hidden else "")


def _names(nodes: Sequence[str]) -> str:
    return ", ".join(nodes[:2]) + (f" and {len(nodes) - 2} more" if len(nodes) > 2 else "")  # noqa: PLR2004 - a pair
