"""The options of ``run`` about what a slice is, how kubelet is told of it, and how a container is given it."""

from cta_group_core.ids import IdForm
from cta_group_core.rooms import SharePolicy
from cta_group_plugin.cli_options import Options, absolute_path, cdi_kind, one_of, whole_number
from cta_group_plugin.settings import DeviceList, RunSettings, Topology


def add_slice_options(options: Options, default: RunSettings) -> None:
    """Add them to a parser."""
    _add_id_options(options, default)
    ways = one_of(*(way.value for way in DeviceList))
    meaning = "how a container is given its slice: envvar for the NVIDIA runtime; cdi, which a pod cannot override"
    options.add("--device-list", ways, default.device_list.value, meaning, "WAY")
    options.add("--cdi-dir", absolute_path, default.cdi.folder, "folder for CDI specifications (with cdi)", "DIR")
    meaning = "kind of the CDI devices that bring GPU and driver; empty: our own bring the device files (with cdi)"
    options.add("--cdi-gpu-kind", cdi_kind, default.cdi.gpu_kind, meaning, "KIND")
    options.add("--reserve-mib", whole_number(0, 1 << 20), default.reserve_mib, "MiB of a GPU never given out", "MIB")
    meaning = "containers on one GPU at most; 0: as many as its MPS server takes, 48 up to CUDA 13.0 and 60 later"
    options.add("--max-clients", whole_number(0, 60), default.max_clients, meaning, "N")
    options.add_switch("--enforce-compute", "limit the SMs of a slice", default=default.enforcement.compute)
    options.add_switch("--enforce-memory", "limit the memory of a slice", default=default.enforcement.memory)
    modes = one_of(*(mode.value for mode in SharePolicy))
    meaning = "cooperative: any shares together; strict-uniform: a GPU serves one size, which nobody can exceed"
    options.add("--enforcement-mode", modes, default.enforcement.mode.value, meaning, "MODE")
    meaning = "how long a container start waits for its limits before kubelet asks again"
    patience = default.start_patience_seconds
    options.add("--start-patience-seconds", whole_number(0, 25), patience, meaning, "SECONDS")


def _add_id_options(options: Options, default: RunSettings) -> None:
    forms = one_of(*(form.value for form in IdForm))
    meaning = "how kubelet is told of a group: uuid as GPU-<uuid>::17; short as g3-017, half the size in a pod's status"
    options.add("--device-ids", lambda text: IdForm(forms(text)), default.device_ids, meaning, "FORM")
    places = one_of(*(place.value for place in Topology))
    meaning = "numa: tell kubelet the NUMA node of each GPU, for its topology manager; none: the plugin alone chooses"
    options.add("--topology", lambda text: Topology(places(text)), default.topology, meaning, "WHAT")
