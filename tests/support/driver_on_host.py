"""A driver as minimal hosts have it: in unusual folders, without a shell, with the simulated MPS control program."""

import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

CONTROL, SERVER = "nvidia-cuda-mps-control", "nvidia-cuda-mps-server"
PROGRAMS = "usr/local/bin"
LIBRARIES = "usr/local/glibc/usr/lib"


@dataclass(frozen=True)
class HostDriver:
    """A driver as minimal hosts have it: unusual folders, its own C library, no shell."""

    root: Path

    @classmethod
    def under(cls, root: Path) -> "HostDriver":
        """Lay it out; the control program is this project's simulated one."""
        programs, libraries = root / PROGRAMS, root / LIBRARIES
        for folder in (programs, libraries):
            folder.mkdir(parents=True)
        control = programs / CONTROL
        module = "cta_group_plugin.simulated.mps_control"
        control.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        control.chmod(0o755)
        shutil.copy("/bin/true", programs / SERVER)
        for library in ("libcuda.so.1", "libnvidia-ml.so.1", "libc.so.6"):
            (libraries / library).write_text("no library: a program that loads this ends at once")
        return cls(root)

    @property
    def control(self) -> Path:
        """The control program."""
        return self.root / PROGRAMS / CONTROL

    def files(self) -> Mapping[Path, int]:
        """Return every file and folder with the time of its last change."""
        return {path: path.stat().st_mtime_ns for path in [self.root, *self.root.rglob("*")]}


def without_execute(driver: HostDriver) -> None:
    """Make the control program a file that cannot be executed."""
    driver.control.chmod(0o644)


def without_server(driver: HostDriver) -> None:
    """Leave the server program out."""
    (driver.root / PROGRAMS / SERVER).unlink()
