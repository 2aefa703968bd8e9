"""What the host shows of itself: folders, loaded drivers, hardware, CDI specifications."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from cta_group_core.compatibility.host_findings import TOOLKIT_MPS_FOLDER
from cta_group_plugin.plain_files import read_plain

_NVIDIA: Final = "0x10de"
_DISPLAY_CLASS: Final = "0x03"
"""PCI classes of display controllers, which data centre GPUs are too ("3D controller")."""
_PASSED_THROUGH: Final = "vfio-pci"
_KIND: Final = re.compile(r"""\bkind["']?\s*:\s*["']?([\w.-]+/[\w.-]+)""")
_RUNTIME_FOLDERS: Final = (Path("/etc/cdi"), Path("/var/run/cdi"))


@dataclass(frozen=True, slots=True)
class HostLook:
    """What was seen."""

    toolkit_mps_mount: bool = False
    driver_is_loaded: bool = False
    """The kernel has NVIDIA's driver, whether or not its libraries are visible here."""
    gpus_on_bus: int = 0
    """NVIDIA GPUs on the PCI bus, those of virtual machines left out."""
    cdi_kinds: frozenset[str] = frozenset()
    """Kinds that CDI specifications describe."""
    cdi_is_visible: bool = False
    """Every folder that runtimes read CDI specifications from can be seen."""


def look_at_host(root: Path, cdi_folder: Path) -> HostLook:
    """Look at the host whose root folder is ``root``; ``cdi_folder`` is where the plugin writes specifications."""

    def below(path: Path) -> Path:
        return root / path.relative_to("/")

    folders = [below(folder) for folder in dict.fromkeys((cdi_folder, *_RUNTIME_FOLDERS))]
    return HostLook(
        toolkit_mps_mount=below(Path(TOOLKIT_MPS_FOLDER)).exists(),
        driver_is_loaded=below(Path("/proc/driver/nvidia/version")).exists(),
        gpus_on_bus=sum(_is_gpu(device) for device in _entries(below(Path("/sys/bus/pci/devices")))),
        cdi_kinds=frozenset(kind for folder in folders for file in _entries(folder) for kind in _kinds(file)),
        cdi_is_visible=all(folder.is_dir() for folder in folders),
    )


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def _is_gpu(device: Path) -> bool:
    if (device / "driver").resolve().name == _PASSED_THROUGH:
        return False
    return _text(device / "vendor") == _NVIDIA and _text(device / "class").startswith(_DISPLAY_CLASS)


def _kinds(file: Path) -> list[str]:
    """Return what a specification says that it describes: ``kind``, in JSON and in YAML."""
    return _KIND.findall(_text(file)) if file.suffix in {".json", ".yaml", ".yml"} else []


def _text(file: Path) -> str:
    try:
        return read_plain(file).decode(errors="replace").strip()
    except OSError:
        return ""
