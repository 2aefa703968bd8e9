"""All findings of one node, the worst first."""

from cta_group_core.compatibility.driver_findings import driver_findings, enforcement_findings
from cta_group_core.compatibility.findings import Finding, Severity, worst_first
from cta_group_core.compatibility.gpu_findings import gpu_findings
from cta_group_core.compatibility.host_findings import HostFacts, host_findings
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, parsed_or_none
from cta_group_core.nodes import NodeStatus


def node_findings(
    status: NodeStatus, host: HostFacts, *, exclusive_mode: bool = True, max_clients: int | None = None
) -> tuple[Finding, ...]:
    """Return everything that is wrong with a node, from what its plugin publishes and what is known of its host."""
    if status.simulated:
        return worst_first([_simulated(), *host_findings(host)])
    limits = enforcement_findings(
        status.enforcement,
        driver=parsed_or_none(DriverVersion.parse, status.driver_version),
        cuda=parsed_or_none(CudaVersion.parse, status.cuda_version),
        gpus=status.gpus,
        max_clients=max_clients,
    )
    of_gpus = (finding for gpu in status.gpus for finding in gpu_findings(gpu, exclusive_mode=exclusive_mode))
    return worst_first([*driver_findings(status.driver_version), *limits, *of_gpus, *host_findings(host)])


def _simulated() -> Finding:
    return Finding(
        Severity.INFO,
        "GPUs",
        "they are simulated: nothing computes and nothing is limited on this node",
        "on nodes that have GPUs set gpus.source: nvml in the chart's values",
    )
