"""The command ``cta-group-plugin``: reads the settings and starts one of the two processes of a node, or examines it.

Exit codes: 0 ended as asked, 1 ended because it could not go on, or found something wrong, 2 a setting is wrong.
"""

import argparse
import os
import socket
import sys
from collections.abc import Mapping, Sequence

from cta_group_core.rooms import SharePolicy
from cta_group_plugin import __version__
from cta_group_plugin.cli_doctor import ABOUT_DOCTOR, add_doctor_options, start_doctor, with_inherited
from cta_group_plugin.cli_options import (
    Options,
    absolute_path,
    api_server_url,
    listen_address,
    node_name,
    one_of,
    own_api_server,
    resource_name,
)
from cta_group_plugin.errors import BadSetting
from cta_group_plugin.gpu_options import (
    add_choice_options,
    add_gpu_options,
    add_health_options,
    choice_of,
    health_settings,
)
from cta_group_plugin.logs import LOG_FORMATS, LOG_LEVELS, set_up_logs
from cta_group_plugin.settings import (
    SUPERVISOR_SOCKET_NAME,
    CdiSettings,
    ComputeModeUse,
    DeviceList,
    EnforcementSettings,
    MpsSettings,
    RunSettings,
    SourceKind,
)
from cta_group_plugin.slice_options import add_slice_options

_BAD_INPUT = 2
_HIDES_GPUS = ("CUDA_VISIBLE_DEVICES", "CUDA_MPS_PIPE_DIRECTORY", "NVML_MPS_DEVICE_ENUMERATION")
"""Variables that would make the driver's library leave GPUs out."""
_INHERITED_BY_DAEMONS = ("PATH", "LD_LIBRARY_PATH")
_ABOUT = "The node side of CTA groups: shares each NVIDIA GPU of this node in countable groups."
_ABOUT_RUN = """\
Serve kubelet as the device plugin of this node and publish what the GPUs hold as the node's CTANode.

Each option can be given by the environment variable in brackets; the command line wins.
Without a cluster, with simulated GPUs and a simulated MPS supervisor inside the process:

  cta-group-plugin run --device-plugin-dir DIR --source simulated --profile h100-sxm --count 8 --no-publish

serves the kubelet whose kubelet.sock is in DIR, and registers again whenever that socket is made anew."""
_ABOUT_MPS = """\
Keep one MPS control daemon running for each GPU of this node that is shared.

It is a process of its own, so that an upgrade of the device plugin never stops a daemon with clients."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    try:
        parser = build_parser(os.environ)
        parsed = parser.parse_args(arguments)
        return _STARTS[parsed.command](parsed)
    except BadSetting as bad:
        print(f"cta-group-plugin: {bad}", file=sys.stderr)
        return _BAD_INPUT


def build_parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser of the whole command line; raises BadSetting for a wrong environment variable."""
    parser = argparse.ArgumentParser(prog="cta-group-plugin", description=_ABOUT)
    parser.add_argument("--version", action="version", version=f"cta-group-plugin {__version__}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    run = _command(commands, "run", "serve kubelet as the device plugin of this node", _ABOUT_RUN)
    _add_run_options(Options(run, environment))
    mps = _command(commands, "mps", "keep the MPS daemons of this node running", _ABOUT_MPS)
    _add_mps_options(Options(mps, environment))
    doctor = _command(commands, "doctor", "say what is wrong with this node, and how to mend it", ABOUT_DOCTOR)
    inherited = Options(doctor, with_inherited(environment))
    add_doctor_options(doctor, inherited)
    _add_run_options(inherited)
    return parser


def _command(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]", name: str, short: str, about: str
) -> argparse.ArgumentParser:
    return commands.add_parser(
        name, help=short, description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )


def _add_run_options(options: Options) -> None:
    default = RunSettings(node_name=socket.gethostname())
    options.add("--node-name", node_name, default.node_name, "name of this node in Kubernetes", "NAME")
    options.add("--resource-name", resource_name, default.resource_name, "resource that pods ask for", "NAME")
    options.add("--device-plugin-dir", absolute_path, default.device_plugin_dir, "folder with kubelet.sock", "DIR")
    options.add(
        "--pod-resources-socket",
        absolute_path,
        default.pod_resources_socket,
        "kubelet's socket that tells which container holds what",
        "FILE",
    )
    add_gpu_options(options, default)
    add_slice_options(options, default)
    add_choice_options(options)
    add_health_options(options)
    options.add_switch("--publish", "write this node's CTANode to the Kubernetes API", default=default.publish)
    meaning = "URL of the Kubernetes API; default: the one of the cluster that this pod runs in"
    options.add("--api-server", api_server_url, own_api_server(options.environment), meaning, "URL")
    meaning = "folder with token and ca.crt for the API"
    options.add("--service-account-dir", absolute_path, default.service_account_dir, meaning, "DIR")
    _add_process_options(options, default.metrics_address)


def _add_mps_options(options: Options) -> None:
    default = MpsSettings()
    options.add("--mps-root", absolute_path, default.mps_root, "folder on the host of the GPUs' MPS daemons", "DIR")
    meaning = f"socket to serve; default: {SUPERVISOR_SOCKET_NAME} in the MPS folder"
    options.add("--mps-socket", absolute_path, None, meaning, "FILE")
    options.add("--control-binary", str, default.control_binary, "NVIDIA's control daemon", "PROGRAM")
    options.add("--driver-root", absolute_path, None, "folder with the driver, where it is in no usual place", "DIR")
    meaning = "where the host's cgroups are: daemons get their own there and outlive the supervisor's container"
    options.add("--cgroup-root", absolute_path, None, meaning, "DIR")
    uses = one_of(*(use.value for use in ComputeModeUse))
    meaning = "exclusive: nobody but the MPS server uses a shared GPU; untouched: no compute mode is changed"
    options.add("--compute-mode", uses, default.compute_mode.value, meaning, "USE")
    options.add_switch("--simulated", "run this project's simulated control daemon instead", default=default.simulated)
    _add_process_options(options, default.metrics_address)


def _add_process_options(options: Options, metrics_address: str) -> None:
    meaning = "where /metrics, /healthz and /readyz are served; empty: nowhere"
    options.add("--metrics-address", listen_address, metrics_address, meaning, "HOST:PORT")
    options.add(
        "--log-level", one_of(*LOG_LEVELS), "info", f"least level that is logged: {', '.join(LOG_LEVELS)}", "LEVEL"
    )
    options.add("--log-format", one_of(*LOG_FORMATS), "text", "text for people, json for collectors", "FORMAT")


def run_settings(parsed: argparse.Namespace) -> RunSettings:
    """Return the settings of ``run`` out of the parsed command line."""
    source = SourceKind(parsed.source)
    default_socket = None if source is SourceKind.SIMULATED else parsed.mps_root / SUPERVISOR_SOCKET_NAME
    return RunSettings(
        node_name=parsed.node_name,
        resource_name=parsed.resource_name,
        device_plugin_dir=parsed.device_plugin_dir,
        pod_resources_socket=parsed.pod_resources_socket,
        source=source,
        profile=parsed.profile,
        count=parsed.count,
        driver_root=parsed.driver_root,
        mps_root=parsed.mps_root,
        mps_socket=parsed.mps_socket or default_socket,
        reserve_mib=parsed.reserve_mib,
        choice=choice_of(parsed),
        max_clients=parsed.max_clients,
        enforcement=EnforcementSettings(
            compute=parsed.enforce_compute, memory=parsed.enforce_memory, mode=SharePolicy(parsed.enforcement_mode)
        ),
        device_ids=parsed.device_ids,
        topology=parsed.topology,
        device_list=DeviceList(parsed.device_list),
        cdi=CdiSettings(folder=parsed.cdi_dir, gpu_kind=parsed.cdi_gpu_kind),
        health=health_settings(parsed, is_simulated=source is SourceKind.SIMULATED),
        start_patience_seconds=parsed.start_patience_seconds,
        metrics_address=parsed.metrics_address,
        publish=parsed.publish,
        api_server=parsed.api_server,
        service_account_dir=parsed.service_account_dir,
        log_level=parsed.log_level,
        log_format=parsed.log_format,
    )


def mps_settings(parsed: argparse.Namespace, environment: Mapping[str, str]) -> MpsSettings:
    """Return the settings of ``mps`` out of the parsed command line."""
    return MpsSettings(
        mps_root=parsed.mps_root,
        mps_socket=parsed.mps_socket or parsed.mps_root / SUPERVISOR_SOCKET_NAME,
        control_binary=parsed.control_binary,
        driver_root=parsed.driver_root,
        cgroup_root=parsed.cgroup_root,
        compute_mode=ComputeModeUse(parsed.compute_mode),
        simulated=parsed.simulated,
        environment={name: environment[name] for name in _INHERITED_BY_DAEMONS if name in environment},
        metrics_address=parsed.metrics_address,
        log_level=parsed.log_level,
        log_format=parsed.log_format,
    )


def _forget_what_hides_gpus() -> None:
    for name in _HIDES_GPUS:
        os.environ.pop(name, None)


# Each command imports its program only when it starts: the supervisor needs no NVML and the plugin no daemon.
def _start_run(parsed: argparse.Namespace) -> int:
    from cta_group_plugin.app import run  # noqa: PLC0415

    _forget_what_hides_gpus()
    settings = run_settings(parsed)
    set_up_logs(settings.log_level, settings.log_format)
    return run(settings)


def _start_mps(parsed: argparse.Namespace) -> int:
    from cta_group_plugin.mps.app import run  # noqa: PLC0415

    settings = mps_settings(parsed, os.environ)
    set_up_logs(settings.log_level, settings.log_format)
    return run(settings)


def _start_doctor(parsed: argparse.Namespace) -> int:
    _forget_what_hides_gpus()
    return start_doctor(parsed, run_settings(parsed))


_STARTS = {"run": _start_run, "mps": _start_mps, "doctor": _start_doctor}
