"""``cta-group-plugin doctor`` about the plugin's neighbours: kubelet's sockets, MPS, other device plugins."""

import os

import pytest

from cta_group_plugin.mps.supervisor import MpsSupervisor
from cta_group_plugin.ports import MpsDemand
from cta_group_plugin.simulated.mps_daemon import SOCKET_NAME
from examined_node import ExaminedNode
from simulated_mps import SimulatedNode, eventually


async def test_without_a_supervisor_slices_wait(examined: ExaminedNode) -> None:
    """The socket that was looked for is named."""
    told = await examined.only()
    assert (told["severity"], told["subject"]) == ("error", "MPS")
    assert f"there is no {examined.mps_root}/supervisor.sock" in told["sentence"]


async def test_without_enforcement_no_supervisor_is_missed(examined: ExaminedNode) -> None:
    """Both dimensions off need no MPS; that they are off is worth knowing."""
    found = await examined.findings("--no-enforce-compute", "--no-enforce-memory")
    assert {one["severity"] for one in found} == {"info"}
    assert {one["subject"] for one in found} == {"enforcement"}


@pytest.mark.usefixtures("supervisor")
async def test_a_missing_pod_resources_socket_names_the_path_and_the_value(examined: ExaminedNode) -> None:
    """A kubelet with a folder of its own has its sockets in two places, and one value says where."""
    examined.pod_resources.unlink()
    told = await examined.only()
    assert f"there is no {examined.pod_resources}" in told["sentence"]
    assert "set kubelet.rootDir" in told["remedy"]
    assert "/var/lib/k0s/kubelet" in told["remedy"]


@pytest.mark.usefixtures("supervisor")
async def test_a_missing_kubelet_socket(examined: ExaminedNode) -> None:
    """Without it the plugin cannot register; the folder is a value of its own."""
    (examined.kubelet.folder / "kubelet.sock").unlink()
    told = await examined.only()
    assert "this node offers no groups" in told["sentence"]
    assert "kubelet.devicePluginsDir" in told["remedy"]


@pytest.mark.usefixtures("supervisor")
async def test_a_socket_that_nobody_serves(examined: ExaminedNode) -> None:
    """A file left of a kubelet that has gone is told apart from a missing one."""
    await examined.kubelet.stop()
    examined.pod_resources.touch()
    found = await examined.findings()
    assert [one["subject"] for one in found] == ["kubelet", "kubelet"]
    assert any("is there and is no socket" in one["sentence"] for one in found)


@pytest.mark.usefixtures("supervisor")
async def test_a_denied_socket_says_the_path_and_selinux(examined: ExaminedNode) -> None:
    """To the plugin, root without a capability, a socket of root's is denied by SELinux: word and value are there."""
    examined.pod_resources.chmod(0)
    without_capabilities = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    _, output, errors = await examined.runs(by=without_capabilities if os.geteuid() == 0 else ())
    assert f"{examined.pod_resources}: permission denied" in output, errors
    assert "SELinux" in output
    assert "seLinuxOptions" in output


async def test_a_shared_gpu_with_its_daemon(examined: ExaminedNode, supervisor: MpsSupervisor) -> None:
    """A share that is limited as it should be is in order."""
    gpu = examined.share(32)
    await supervisor.sync([MpsDemand(gpu, 25, 35532)])
    assert await examined.findings() == []


@pytest.mark.usefixtures("supervisor")
async def test_a_shared_gpu_without_a_daemon(examined: ExaminedNode) -> None:
    """Nobody told the supervisor what is held."""
    examined.share(32)
    assert "keeps no MPS daemon for it" in (await examined.only())["sentence"]


async def test_a_whole_gpu_needs_no_daemon(examined: ExaminedNode, supervisor: MpsSupervisor) -> None:
    """Its processes are its tenant's, whoever they are."""
    del supervisor
    examined.share(128)
    examined.change(processes=((4711, 3000 << 20, False),))
    assert await examined.findings() == []


async def test_a_ceiling_below_a_share(examined: ExaminedNode, supervisor: MpsSupervisor) -> None:
    """A daemon that lets a client have less than it holds is told in numbers."""
    gpu = examined.share(32)
    await supervisor.sync([MpsDemand(gpu, 10, 35532)])
    told = await examined.only()
    assert "lets a client have 10 % of the SMs, and a share of 32 groups needs 25 %" in told["sentence"]


async def test_a_daemon_in_fault_or_silent(
    examined: ExaminedNode, supervisor: MpsSupervisor, mps_node: SimulatedNode
) -> None:
    """The supervisor's own words, which say what it is going to do."""
    gpu = examined.share(32)
    await supervisor.sync([MpsDemand(gpu, 25, 35532)])
    with mps_node.client(gpu):
        mps_node.fail(gpu, "fault")
        await eventually(lambda: not supervisor.states()[gpu].ready, "the supervisor sees the fault")
        told = await examined.only()
    assert "its MPS daemon is not ready" in told["sentence"]
    assert "FAULT" in told["sentence"]


async def test_sockets_that_shut_tenants_out(
    examined: ExaminedNode, supervisor: MpsSupervisor, mps_node: SimulatedNode
) -> None:
    """A client that does not run as root must be able to connect."""
    gpu = examined.share(32)
    await supervisor.sync([MpsDemand(gpu, 25, 35532)])
    (mps_node.pipe(gpu) / SOCKET_NAME).chmod(0o600)
    await eventually(lambda: not supervisor.states()[gpu].ready, "the supervisor sees the mode")
    assert "shuts out clients that do not run as root" in (await examined.only())["sentence"]


@pytest.mark.usefixtures("supervisor")
@pytest.mark.parametrize("suffix", ["", "::3"])
async def test_a_second_plugin_gives_the_same_gpu_out(examined: ExaminedNode, suffix: str) -> None:
    """Kubelet's own list of what can be allocated shows it, with and without replicas."""
    examined.kubelet.others = {"nvidia.com/gpu": [examined.gpu.uuid + suffix]}
    await examined.kubelet.restart()
    told = await examined.only()
    assert "another device plugin serves this GPU as nvidia.com/gpu" in told["sentence"]
    claimed = await examined.only(f"--gpu-include={examined.gpu.uuid}")
    assert "another device plugin gives it out too, as nvidia.com/gpu" in claimed["sentence"]
    assert await examined.findings(f"--gpu-exclude={examined.gpu.uuid}") == [], "what settings leave out is meant"


@pytest.mark.usefixtures("supervisor")
async def test_devices_of_other_kinds_are_no_second_owner(examined: ExaminedNode) -> None:
    """Network cards and other GPUs do not matter."""
    examined.kubelet.others = {
        "example.com/nic": ["nic-0"],
        "nvidia.com/gpu": ["GPU-99999999-0000-4000-8000-000000000000"],
    }
    await examined.kubelet.restart()
    assert await examined.findings() == []
