"""The chart starts the programs of a node with arguments that they understand."""

from pathlib import Path

import pytest
import yaml

from chart_rendering import CHART, IN_A_POD, SCENARIOS, arguments_of, pod_of
from cta_group_core import names
from cta_group_core.ids import IdForm
from cta_group_core.rooms import SharePolicy
from cta_group_plugin.cli import build_parser, mps_settings, run_settings
from cta_group_plugin.settings import DeviceList, MpsSettings, RunSettings, SourceKind, Topology

_NO_LIMITS = ("enforcement.compute=false", "enforcement.memory=false")


def _run_settings(scenario: str, *settings: str) -> RunSettings:
    return run_settings(build_parser(IN_A_POD).parse_args(arguments_of(scenario, "plugin", *settings)))


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_plugin_understands_itsarguments_of(scenario: str) -> None:
    """The real command line parses what each scenario renders; every option is a flag, none is misspelt."""
    settings = _run_settings(scenario)
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    assert settings.publish
    assert settings.metrics_address == f"0.0.0.0:{values['plugin']['metricsPort']}"
    assert settings.max_clients == values["gpus"]["maxClients"]
    assert settings.reserve_mib == values["gpus"]["reserveMiB"]
    assert settings.source is (SourceKind.SIMULATED if scenario == "simulated" else SourceKind.NVML)


def test_choice_of_gpus_reaches_the_plugin() -> None:
    """The chart's lists and overrides become the plugin's choice."""
    settings = _run_settings(
        "default",
        "gpus.include={0,H100}",
        "gpus.exclude={GPU-1}",
        "gpus.overrides[0].gpu=GB10",
        "gpus.overrides[0].memoryMiBOverride=98304",
    )
    assert [str(name) for name in settings.choice.include] == ["0", "H100"]
    assert [str(name) for name in settings.choice.exclude] == ["GPU-1"]
    (override,) = settings.choice.overrides
    assert (str(override.gpu), override.memory_mib, override.sm_count) == ("GB10", 98304, None)


def test_classes_of_xids_reach_the_plugin() -> None:
    """The chart's lists become the plugin's policy."""
    settings = _run_settings("default", "health.xidPolicy.fatal={13,31}", "health.xidPolicy.report={48}")
    policy = settings.health.rules.policy
    assert [policy.rule_of(code).xid_class for code in (13, 31, 48, 79)] == ["fatal", "fatal", "report", "fatal"]


def test_the_plugin_looks_at_processes_where_it_and_the_daemons_share_the_host_s_ids() -> None:
    """Otherwise it would take tenants for others, and says instead that it cannot see them."""
    shared, not_shared = Path("/proc"), None
    for chosen, folder in (
        ((), shared),
        (("plugin.hostPID=false",), not_shared),
        (("mps.hostPID=false",), not_shared),
        (("mps.hostPID=false", "mps.enabled=false", *_NO_LIMITS), shared),
    ):
        assert _run_settings("default", *chosen).health.processes_dir == folder
    assert _run_settings("simulated").health.processes_dir is None
    assert _run_settings("default", "health.lateMemorySeconds=90").health.late_memory_seconds == 90


def test_the_chart_s_defaults_are_the_program_s_own() -> None:
    """Whoever starts the plugin by hand gets what the chart gives, but for what only a cluster has."""
    settings = _run_settings("default")
    default = RunSettings(node_name=settings.node_name)
    assert settings.resource_name == default.resource_name
    assert settings.device_plugin_dir == default.device_plugin_dir
    assert settings.pod_resources_socket == default.pod_resources_socket
    assert settings.mps_root == default.mps_root
    assert settings.mps_socket == default.mps_root / "supervisor.sock"
    assert settings.enforcement == default.enforcement
    assert settings.device_list == default.device_list
    assert settings.device_ids == default.device_ids
    assert settings.topology == default.topology
    assert settings.health == default.health
    assert settings.choice == default.choice


def test_the_defaults_of_cdi_are_the_program_s_own() -> None:
    """Switching the device list alone gives what the program would do by itself."""
    settings = _run_settings("default", "deviceList=cdi")
    assert settings.device_list is DeviceList.CDI
    assert settings.cdi == RunSettings(node_name="").cdi
    assert _run_settings("default", "deviceList=cdi", "cdi.gpuKind=").cdi.gpu_kind == ""


def test_how_kubelet_sees_groups_is_the_node_s() -> None:
    """Every form of ids, and every kind of topology, can be chosen."""
    for form in IdForm:
        assert _run_settings("default", f"deviceIds={form}").device_ids is form
    for topology in Topology:
        assert _run_settings("default", f"topology={topology}").topology is topology


def test_each_dimension_is_switched_off_by_itself() -> None:
    """``enforcement.compute`` and ``enforcement.memory`` reach the program one by one."""
    for compute in (True, False):
        for memory in (True, False):
            chosen = (f"enforcement.compute={str(compute).lower()}", f"enforcement.memory={str(memory).lower()}")
            enforcement = _run_settings("default", *chosen).enforcement
            assert (enforcement.compute, enforcement.memory) == (compute, memory)


def test_the_mode_of_enforcement_is_the_node_s() -> None:
    """Every policy that the placement rule knows can be chosen."""
    for mode in SharePolicy:
        assert _run_settings("default", f"enforcement.mode={mode}").enforcement.mode is mode


@pytest.mark.parametrize("scenario", [name for name in SCENARIOS if name != "minimal"])
def test_the_supervisor_understands_its_arguments_and_serves_where_the_plugin_asks(scenario: str) -> None:
    """One socket, spelled twice by the chart; simulated GPUs get a simulated daemon and no others do."""
    mps = mps_settings(build_parser(IN_A_POD).parse_args(arguments_of(scenario, "mps")), IN_A_POD)
    plugin = _run_settings(scenario)
    assert mps.mps_socket == plugin.mps_socket
    assert mps.mps_root == plugin.mps_root
    assert mps.simulated is (scenario == "simulated")
    assert mps.control_binary == "nvidia-cuda-mps-control"
    assert mps.driver_root == plugin.driver_root == (Path("/driver") if scenario == "driver-root" else None)
    default = MpsSettings()
    assert mps.compute_mode is default.compute_mode
    assert mps.cgroup_root == Path("/sys/fs/cgroup")


def test_without_a_supervisor_simulated_gpus_bring_their_own() -> None:
    """The plugin then simulates it in its own process, as it does without a cluster."""
    assert _run_settings("simulated", "mps.enabled=false").mps_socket is None


def test_the_driver_comes_in_by_one_way() -> None:
    """The NVIDIA runtime reads two variables; a folder of the host needs its own; simulated GPUs need none."""

    def environment(scenario: str, component: str) -> set[str]:
        container = pod_of(scenario, component)["spec"]["containers"][0]
        return {variable["name"] for variable in container.get("env", ())}

    node_name = {"CTA_GROUP_PLUGIN_NODE_NAME"}
    runtime = {names.ENV_VISIBLE_DEVICES, "NVIDIA_DRIVER_CAPABILITIES"}
    assert environment("default", "plugin") == node_name | runtime
    assert environment("default", "mps") == runtime
    assert environment("driver-root", "plugin") == node_name
    assert environment("driver-root", "mps") == set()
    assert environment("simulated", "plugin") == node_name
    assert environment("simulated", "mps") == set()
