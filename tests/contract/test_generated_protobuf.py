"""The committed code of the .proto files is what scripts/generate makes of them."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "plugin" / "src"
PROTOS = sorted(SOURCE.rglob("*.proto"))


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate everything anew into a folder of its own."""
    folder = tmp_path_factory.mktemp("generated")
    subprocess.run([str(ROOT / "scripts" / "generate"), str(folder)], check=True, cwd=ROOT)
    return folder


@pytest.mark.parametrize("proto", PROTOS, ids=lambda proto: proto.stem)
def test_committed_code_is_up_to_date(proto: Path, generated: Path) -> None:
    """Each generated file is there and equal; run scripts/generate after a change of a .proto file."""
    made = sorted(generated.joinpath(proto.relative_to(SOURCE)).parent.glob(f"{proto.stem}_pb2*"))
    assert len(made) == 4
    for path in made:
        assert SOURCE.joinpath(path.relative_to(generated)).read_text() == path.read_text(), path.name


@pytest.mark.parametrize(
    ("service", "module"),
    [
        ("v1beta1.Registration", "deviceplugin_v1beta1"),
        ("v1beta1.DevicePlugin", "deviceplugin_v1beta1"),
        ("v1.PodResourcesLister", "podresources_v1"),
    ],
)
def test_services_have_kubelets_names(service: str, module: str) -> None:
    """A wire name that kubelet does not know is answered with UNIMPLEMENTED, so the names are fixed here."""
    assert f"'/{service}/" in (SOURCE / "cta_group_plugin" / "kubelet_api" / f"{module}_pb2_grpc.py").read_text()
