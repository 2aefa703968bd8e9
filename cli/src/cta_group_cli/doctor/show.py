"""Prints what was found, for people or for programs."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cta_group_cli.doctor.admission_findings import admission_findings
from cta_group_cli.doctor.gather import Facts, gather
from cta_group_cli.doctor.node_findings import findings_of_node
from cta_group_cli.doctor.release_findings import kinds_findings, release_findings
from cta_group_cli.doctor.tenant_findings import runtime_findings
from cta_group_cli.doctor_facts import DoctorReader
from cta_group_cli.exits import Exit
from cta_group_cli.terminal import say
from cta_group_core.compatibility.findings import Finding, need_a_person
from cta_group_core.plurals import counted

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Told:
    """A finding, and the nodes that have it; none for one that is about the whole release."""

    finding: Finding
    nodes: Sequence[str] = ()

    def as_json(self) -> dict[str, object]:
        """Return the facts for programs."""
        return {**self.finding.as_json(), "nodes": list(self.nodes)}

    def as_text(self) -> str:
        """Return the lines for people: on which nodes, then what."""
        if not self.nodes:
            return self.finding.as_text()
        names = ", ".join(self.nodes[:_SHOWN]) + (f" and {len(self.nodes) - _SHOWN} more" * (len(self.nodes) > _SHOWN))
        where = f"node{'s' if len(self.nodes) > 1 else ''} {names}"
        located = Finding(
            self.finding.severity, f"{where}, {self.finding.subject}", self.finding.sentence, self.finding.remedy
        )
        return located.as_text()


def show_checkup(reader: DoctorReader, name: str | None, *, as_json: bool) -> Exit:
    """Examine the cluster, or one node of it, and print what is wrong. Raises NotFound, ClusterUnavailable."""
    facts = gather(reader, name)
    told = examine(facts)
    say(json.dumps(_facts(facts, told)) if as_json else _text(facts, told))
    return Exit.FINDINGS if need_a_person(one.finding for one in told) else Exit.FINE


def examine(facts: Facts) -> Sequence[Told]:
    """Return what is wrong, the worst first; what several nodes have is told once."""
    on_nodes: dict[Finding, list[str]] = {}
    for name in facts.names:
        for finding in findings_of_node(facts, name):
            on_nodes.setdefault(finding, []).append(name)
    general = [*kinds_findings(facts), *runtime_findings(facts)]
    if facts.asked_for is None:
        general += [*release_findings(facts), *admission_findings(facts)]
    return _in_order([*(Told(one) for one in general), *(Told(one, nodes) for one, nodes in on_nodes.items())])


def _in_order(told: Iterable[Told]) -> Sequence[Told]:
    return sorted(told, key=lambda one: one.finding.severity.rank)


def _facts(facts: Facts, told: Sequence[Told]) -> dict[str, object]:
    return {
        "nodes": list(facts.names),
        "findings": [one.as_json() for one in told],
        "notChecked": list(facts.unread),
    }


def _looks_closer(facts: Facts) -> Sequence[str]:
    """Return how the named node is asked what no object of the cluster tells."""
    if facts.asked_for is None or not (pods := facts.pods_of("plugin", facts.asked_for)):
        return ()
    meta = pods[0].metadata
    command = f"kubectl -n {meta.namespace} exec {meta.name} -- cta-group-plugin doctor"
    what = "its driver's answers, CDI specifications, the container toolkit's MPS folder, names of processes"
    return (f"The node itself knows more ({what}):\n  {command}",)


def _text(facts: Facts, told: Sequence[Told]) -> str:
    parts = [one.as_text() for one in told]
    parts += [f"NOT CHECKED, {entry}" for entry in facts.unread]
    parts += _looks_closer(facts)
    nodes = counted(len(facts.names), "node")
    parts.append(
        f"{counted(len(told), 'finding')}; {nodes} examined." if told else f"Nothing is wrong; {nodes} examined."
    )
    return "\n\n".join(parts)
