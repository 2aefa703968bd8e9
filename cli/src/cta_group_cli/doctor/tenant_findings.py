"""What keeps the pods that ask for groups from using them: their image, their runtime class."""

from collections.abc import Iterator
from typing import Final

from cta_group_cli.doctor.gather import Facts
from cta_group_cli.objects import Pod
from cta_group_core.compatibility.findings import Finding, Severity
from cta_group_core.compatibility.image_findings import image_findings
from cta_group_core.compatibility.versions import CudaVersion, DriverVersion, parsed_or_none
from cta_group_core.nodes import NodeStatus

_SANDBOXES: Final = ("kata", "runsc", "gvisor", "firecracker")
"""Handlers of runtimes whose containers do not share the node's kernel, by parts of their usual names."""
_SHOWN: Final = 3


def image_problems(facts: Facts, node: str, status: NodeStatus) -> Iterator[Finding]:
    """Yield the images of pods on a node that its driver does not run."""
    if status.simulated:
        return
    driver = parsed_or_none(DriverVersion.parse, status.driver_version)
    cuda = parsed_or_none(CudaVersion.parse, status.cuda_version)
    pods = [pod for pod in facts.tenants if pod.spec.node_name == node]
    for image in sorted({container.image for pod in pods for container in pod.spec.containers}):
        yield from image_findings(image, driver=driver, cuda=cuda)


def runtime_findings(facts: Facts) -> Iterator[Finding]:
    """Yield the pods whose runtime class keeps their slice from them."""
    plugin = facts.workload("plugin")
    if plugin is None or plugin.option("--source") == "simulated":
        return
    needed = plugin.spec.template.spec.runtime_class_name
    by_variables = (plugin.option("--device-list") or "envvar") == "envvar"
    without = [pod for pod in facts.tenants if not pod.spec.runtime_class_name]
    if needed and by_variables and without:
        yield Finding(
            Severity.WARNING,
            f"runtime class {needed}",
            f"the device list envvar needs the NVIDIA runtime, which is not the nodes' default one: {_named(without)} "
            "without it get the environment of a slice and no GPU",
            f"set runtimeClassName: {needed} in those pods, or deviceList: cdi in the chart's values",
        )
    elif plugin.option("--driver-root") and by_variables and without:
        yield Finding(
            Severity.WARNING,
            "device list envvar",
            "the driver is a folder of the host, so no NVIDIA runtime is known that reads a container's variables: "
            f"where there is none, {_named(without)} get the environment of a slice and no GPU",
            "set deviceList: cdi in the chart's values (cdi.gpuKind empty where no toolkit describes the GPUs), or the "
            "class of an NVIDIA runtime in those pods",
        )
    handlers = {one.metadata.name: one.handler for one in facts.classes}
    for name in sorted({pod.spec.runtime_class_name for pod in facts.tenants if pod.spec.runtime_class_name}):
        pods = [pod for pod in facts.tenants if pod.spec.runtime_class_name == name]
        handler = handlers.get(name, name)
        if any(part in handler for part in _SANDBOXES):
            yield _sandboxed(name, handler, pods)
        elif needed and by_variables and handler != handlers.get(needed, needed):
            yield _unknown(name, handler, needed, pods)


def _sandboxed(name: str, handler: str, pods: list[Pod]) -> Finding:
    return Finding(
        Severity.WARNING,
        f"runtime class {name}",
        f"its handler {handler} runs containers behind a kernel of their own, from where MPS cannot be "
        f"reached: {_named(pods)} get no limits that hold",
        "use another runtime class for pods that ask for groups, or whole GPUs",
    )


def _unknown(name: str, handler: str, needed: str, pods: list[Pod]) -> Finding:
    return Finding(
        Severity.WARNING,
        f"runtime class {name}",
        f"its handler {handler} is not that of {needed}, which brings GPUs into pods here: unless it does so too, "
        f"{_named(pods)} get the environment of a slice and no GPU",
        f"set runtimeClassName: {needed} in those pods, or deviceList: cdi in the chart's values",
    )


def _named(pods: list[Pod]) -> str:
    names = [pod.metadata.full_name for pod in pods]
    return f"{len(names)} pods ({', '.join(names[:_SHOWN])}{', ...' if len(names) > _SHOWN else ''})"
