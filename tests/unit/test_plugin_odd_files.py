"""What lies where a file of the host should be and is none: it is told, and nobody waits for it or keeps it whole."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cta_group_core.ids import GpuUuid
from cta_group_plugin.adapters.api_server import ApiServer
from cta_group_plugin.adapters.cdi_files import CdiFiles
from cta_group_plugin.adapters.checkpoint import CHECKPOINT, KubeletCheckpoint
from cta_group_plugin.adapters.state_folder import NUMBERS, RECORD, REPAIRED, StateFolder
from cta_group_plugin.doctor.host import look_at_host
from cta_group_plugin.errors import ApiUnavailable, BadSetting, CdiUnavailable, MpsUnavailable, StateUnavailable
from cta_group_plugin.mps.app import run
from cta_group_plugin.mps.daemon import DaemonProcess
from cta_group_plugin.mps.folders import MpsFolders
from cta_group_plugin.plain_files import read_plain
from cta_group_plugin.settings import MpsSettings

Make = Callable[[Path], None]


def larger_than_allowed(path: Path) -> None:
    """Make a file of more than any has."""
    with path.open("wb") as file:
        file.truncate((16 << 20) + 1)


def device_without_end(path: Path) -> None:
    """Make a link to one."""
    path.symlink_to("/dev/zero")


def link_to_itself(path: Path) -> None:
    """Make one."""
    path.symlink_to(path)


ODD: list[Make] = [os.mkfifo, Path.mkdir, device_without_end, link_to_itself, larger_than_allowed]


@pytest.fixture(params=ODD, ids=lambda make: make.__name__)
def odd(request: pytest.FixtureRequest) -> Make:
    """Return how each odd thing is made."""
    made: Make = request.param
    return made


def test_a_plain_file_is_read(tmp_path: Path) -> None:
    """Also one that a link names, and one of the kernel's, which seem to be empty."""
    (tmp_path / "a").write_bytes(b"text")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    assert read_plain(tmp_path / "b") == b"text"
    assert read_plain(Path("/proc/self/stat")).startswith(str(os.getpid()).encode())


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def test_every_odd_thing_is_named_and_none_stays_open(tmp_path: Path, odd: Make) -> None:
    """However it cannot be read: the error has its path, and no descriptor is left behind."""
    odd(tmp_path / "odd")
    before = open_files()
    with pytest.raises(OSError, match=str(tmp_path / "odd")):
        read_plain(tmp_path / "odd")
    assert open_files() <= before


def test_the_state_folder(tmp_path: Path, odd: Make) -> None:
    """Health, numbers and a person's word; each is named."""
    folder = StateFolder(tmp_path)
    reads: dict[str, Callable[[], object]] = {
        RECORD: folder.load,
        NUMBERS: folder.load_numbers,
        REPAIRED: folder.take_word,
    }
    for name, read in reads.items():
        odd(tmp_path / name)
        with pytest.raises(StateUnavailable, match=name):
            read()


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_where_the_record_is_to_be_written(tmp_path: Path, make: Make) -> None:
    """The unfinished file is taken away where that can be done, and the next record is kept."""
    make(tmp_path / f"{RECORD}.new")
    with pytest.raises(StateUnavailable, match=RECORD):
        StateFolder(tmp_path).save("{}")
    assert not (tmp_path / RECORD).exists()


def test_the_record_of_kubelet(tmp_path: Path, odd: Make) -> None:
    """It tells nothing."""
    odd(tmp_path / CHECKPOINT)
    record = KubeletCheckpoint(tmp_path, "nvidia.com/cta-group")
    assert (record.pod_devices(), record.registered()) == (None, frozenset())


def test_a_cdi_specification(tmp_path: Path, odd: Make) -> None:
    """It takes the place of whatever is there; of a folder it cannot, and says so."""
    file = tmp_path / "a.json"
    odd(file)
    if odd is Path.mkdir:
        with pytest.raises(CdiUnavailable, match=r"a\.json: cannot be written"):
            CdiFiles(tmp_path).keep({"a.json": "{}"})
    else:
        CdiFiles(tmp_path).keep({"a.json": "{}"})
        assert (file.read_text(), file.is_symlink()) == ("{}", False)


def test_a_folder_of_cdi_that_the_doctor_looks_at(tmp_path: Path, odd: Make) -> None:
    """What can be read beside it is told all the same."""
    folder = tmp_path / "etc/cdi"
    folder.mkdir(parents=True)
    odd(folder / "a.json")
    (folder / "b.json").write_text('{"kind": "nvidia.com/gpu"}')
    assert look_at_host(tmp_path, Path("/var/run/cdi")).cdi_kinds == {"nvidia.com/gpu"}


def test_the_token(tmp_path: Path, odd: Make) -> None:
    """Why it cannot be read is told; the next request reads it anew."""
    odd(tmp_path / "token")
    with pytest.raises(ApiUnavailable, match="token"):
        ApiServer("https://127.0.0.1:1", tmp_path).request("GET", "/", None, "application/json")


def test_the_record_of_a_daemon(tmp_path: Path, odd: Make) -> None:
    """The GPU waits with the reason, since nobody knows whether a daemon runs; the others do not."""
    folders = MpsFolders.under(tmp_path, GpuUuid("GPU-1"))
    folders.make()
    odd(folders.record)
    with pytest.raises(MpsUnavailable, match="GPU GPU-1: the record of its MPS daemon cannot be read"):
        DaemonProcess.found(folders)


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir], ids=["pipe", "folder"])
def test_the_files_that_the_supervisor_writes(tmp_path: Path, make: Make) -> None:
    """Its lock is a wrong setting; the output and the record of a daemon keep one GPU waiting."""
    make(tmp_path / "supervisor.lock")
    with pytest.raises(BadSetting, match="cannot be used"):
        run(MpsSettings(mps_root=tmp_path, mps_socket=tmp_path / "s.sock", simulated=True, metrics_address=""))
    folders = MpsFolders.under(tmp_path, GpuUuid("GPU-1"))
    folders.make()
    make(folders.output)
    make(folders.record.with_name(f".{folders.record.name}"))
    with pytest.raises(MpsUnavailable, match="output cannot be kept"):
        folders.open_output()
    with pytest.raises(MpsUnavailable, match="cannot be written"):
        folders.write(folders.record, "{}")
