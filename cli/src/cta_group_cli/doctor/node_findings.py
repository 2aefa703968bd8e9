"""What is wrong with one node: what its plugin publishes, what kubelet says, and where the two disagree."""

from collections.abc import Iterator
from typing import Final

from cta_group_cli.doctor.gather import Facts
from cta_group_cli.doctor.release_findings import pod_findings
from cta_group_cli.doctor.tenant_findings import image_problems
from cta_group_cli.doctor_facts import Machine
from cta_group_core.compatibility.driver_findings import subject_of
from cta_group_core.compatibility.findings import Finding, Severity, worst_first
from cta_group_core.compatibility.host_findings import HostFacts, is_churning_version
from cta_group_core.compatibility.node_findings import node_findings
from cta_group_core.names import (
    CONDITION_CLIENTS_LIMITED,
    CONDITION_COMPATIBLE,
    CONDITION_HOLDERS_KNOWN,
    CONDITION_MPS_READY,
    CONDITION_REGISTERED,
    LEFT_OUT,
)
from cta_group_core.nodes import Condition, ConditionStatus, GpuHealth, GpuStatus, NodeStatus

_OTHER_PLUGINS: Final = ("nvidia.com/gpu", "nvidia.com/gpu.shared")
_MIG_PLUGIN: Final = "nvidia.com/mig-"
_GPU_LABELS: Final = ("nvidia.com/gpu.present", "feature.node.kubernetes.io/pci-10de.present")
_REMEDIES: Final = {
    CONDITION_REGISTERED: "kubectl logs of the plugin's pod on this node; kubelet.devicePluginsDir of the chart's "
    "values must be the folder with kubelet.sock",
    CONDITION_MPS_READY: "kubectl logs of the MPS supervisor's pod on this node, and /run/cta-group/mps/<GPU>/log on "
    "the node",
    CONDITION_COMPATIBLE: "cta-group-plugin doctor in the plugin's pod on this node tells more",
    CONDITION_CLIENTS_LIMITED: "restart the pods that it names; they must leave CUDA_MPS_PIPE_DIRECTORY and the folder "
    "that it names as they were given",
    CONDITION_HOLDERS_KNOWN: "set kubelet.rootDir of the chart's values to kubelet's --root-dir",
}
_OF_GPUS: Final = ("GpuUnhealthy", "GpuSuspect", "GpuRecovering", "GpuWithheld", "ClaimedTwice")
_TOLD_OTHERWISE: Final = frozenset({*_OF_GPUS, "DriverUnsuitable", "NoDriver", "NoGpu", "NothingToOffer"})
"""Reasons of conditions whose matter has a finding of its own."""

_NOT_ANSWERING: Final = "DriverDoesNotAnswer"
_RESET: Final = (
    "let what runs there end, then nvidia-smi --gpu-reset -i {uuid}, or restart the node; after that it comes back by "
    "itself"
)
_OF_HEALTH: Final = {
    GpuHealth.UNHEALTHY: (Severity.ERROR, "unhealthy", _RESET),
    GpuHealth.SUSPECT: (Severity.WARNING, "suspect", f"look again in some minutes; if it becomes unhealthy, {_RESET}"),
    GpuHealth.RECOVERING: (Severity.INFO, "recovering", "nothing: it is watched, and comes back by itself"),
}
"""What is said of each; where only the MPS daemon is in the way, the condition MPSReady tells."""


def findings_of_node(facts: Facts, name: str) -> tuple[Finding, ...]:
    """Return everything that is wrong with a node, the worst first."""
    machine = facts.machines.get(name)
    status = next((node.status for node in facts.nodes if node.name == name), None)
    found = [*pod_findings(facts, name), *_published(facts, name, machine, status)]
    if status is not None:
        found += [*_matter(facts, machine, status), *_conditions(status), *_gpus(status)]
        found += [*image_problems(facts, name, status), *_other_plugins(status, machine), *_kubelet(status, machine)]
    return worst_first(found)


def _published(facts: Facts, name: str, machine: Machine | None, status: NodeStatus | None) -> Iterator[Finding]:
    if other := next((entry.problem for entry in facts.unreadable if entry.name == name), None):
        yield Finding(
            Severity.ERROR,
            "CTANode",
            f"it cannot be read by this version: {other}",
            "upgrade kubectl cta, or the release, so that both are of one version",
        )
    elif status is None and facts.has_kinds and facts.pods_of("plugin", name):
        yield Finding(
            Severity.ERROR,
            "CTANode",
            "a pod of the plugin is there and has published nothing",
            "kubectl logs of that pod: it cannot reach the API server, or a policy refuses its writes",
        )
    elif status is not None and machine is None and facts.machines:
        yield Finding(
            Severity.WARNING,
            "CTANode",
            "it is left of a node that is gone",
            f"kubectl delete ctanode {name}",
        )
    elif status is not None and machine is not None and not status.is_of(machine.metadata.uid):
        yield Finding(
            Severity.ERROR,
            "CTANode",
            "it speaks of an earlier machine of this name, so no pod is placed here by it",
            "kubectl logs of the plugin's pod on this node: it writes a new one within a minute where it can",
        )


def _matter(facts: Facts, machine: Machine | None, status: NodeStatus) -> Iterator[Finding]:
    """Yield what the compatibility rules find; a node that shows no sign of a GPU needs no driver."""
    plugin, mps = facts.workload("plugin"), facts.workload("mps")
    most = plugin.option("--max-clients") if plugin else None
    found = node_findings(
        status,
        _host(facts, machine),
        exclusive_mode=not (mps and mps.option("--compute-mode") == "untouched"),
        max_clients=int(most) if most and most.isdecimal() else None,
    )
    without_driver = not status.simulated and status.driver_version is None
    has_gpu = machine is None or any(machine.metadata.labels.get(label) == "true" for label in _GPU_LABELS)
    for finding in found:
        if not (without_driver and finding.subject == "driver") or has_gpu:
            yield finding
        elif facts.asked_for is not None:
            yield Finding(Severity.INFO, finding.subject, finding.sentence, finding.remedy)


def _host(facts: Facts, machine: Machine | None) -> HostFacts:
    version = machine.status.node_info.kubelet_version if machine else ""
    gates = facts.gates.get(machine.metadata.name) if machine else None
    if not version or (gates is None and is_churning_version(version)):
        return HostFacts()  # what could not be asked is no finding
    return HostFacts(kubelet_version=version, feature_gates=gates or {})


def _conditions(status: NodeStatus) -> Iterator[Finding]:
    for condition in status.conditions:
        fails = condition.status is ConditionStatus.FALSE and condition.reason not in _TOLD_OTHERWISE
        if fails or condition.reason == _NOT_ANSWERING:
            yield _of_condition(condition)


def _of_condition(condition: Condition) -> Finding:
    since = f" since {condition.last_transition_time}" if condition.last_transition_time else ""
    return Finding(
        Severity.ERROR,
        f"condition {condition.type}",
        f"{condition.reason}{since}: {condition.message}",
        _REMEDIES.get(condition.type, "kubectl logs of the plugin's pod on this node"),
    )


def _gpus(status: NodeStatus) -> Iterator[Finding]:
    for gpu in status.gpus:
        if gpu.health in _OF_HEALTH:
            yield _of_health(gpu)
        elif gpu.withheld and not _has_mig(gpu.mig_mode) and not gpu.withheld.startswith(LEFT_OUT):
            yield Finding(
                Severity.WARNING,
                subject_of(gpu),
                f"it offers no groups: {gpu.withheld}",
                "what the sentence names; every setting is a value of the chart",
            )


def _of_health(gpu: GpuStatus) -> Finding:
    severity, word, remedy = _OF_HEALTH[gpu.health]
    since = f" since {gpu.health_since}" if gpu.health_since else ""
    why = gpu.health_reason or "no reason is told"
    sentence = f"it is {word}{since}: {why}; nothing new starts on it"
    return Finding(severity, subject_of(gpu), sentence, remedy.format(uuid=gpu.uuid))


def _has_mig(mode: str | None) -> bool:
    return mode == "Enabled"  # the compatibility rules tell of it


def _other_plugins(status: NodeStatus, machine: Machine | None) -> Iterator[Finding]:
    """Find GPUs that two plugins offer, by their numbers: more are offered together than there are."""
    if machine is None or status.simulated:
        return
    names = (name for name in machine.status.allocatable if name in _OTHER_PLUGINS or name.startswith(_MIG_PLUGIN))
    others = {name: machine.offers(name) for name in sorted(names) if machine.offers(name)}
    ours = sum(gpu.is_placeable for gpu in status.gpus)
    if others and ours and ours + sum(others.values()) > len(status.gpus):
        told = ", ".join(f"{number} {name}" for name, number in others.items())
        yield Finding(
            Severity.ERROR,
            "second device plugin",
            f"this node offers {told} beside groups of {ours} of its {len(status.gpus)} GPUs: a GPU is given out twice",
            "keep the other plugin off this node, or say which GPUs are whose (gpus.include, gpus.exclude, and the "
            "other plugin's own list)",
        )


def _kubelet(status: NodeStatus, machine: Machine | None) -> Iterator[Finding]:
    if machine is None or machine.offers(status.resource_name) == status.allocatable:
        return
    yield Finding(
        Severity.WARNING,
        "kubelet",
        f"it offers {machine.offers(status.resource_name)} {status.resource_name}, and the plugin {status.allocatable}",
        "look again in a minute; if it stays, delete the plugin's pod on this node, which registers it again",
    )
