"""The command line teaches, takes each option from the environment too, and refuses in words."""

from pathlib import Path

import pytest

from cta_group_core.align_mode import AlignMode
from cta_group_operator.cli import build_parser, main, settings_of
from cta_group_operator.cli_options import own_namespace
from cta_group_operator.errors import BadSetting


def test_defaults_and_flags() -> None:
    """Flags win over the environment, and the environment over defaults."""
    environment = {"CTA_GROUP_OPERATOR_PLACEMENT": "off", "CTA_GROUP_OPERATOR_NAMESPACE": "gpu"}
    settings = settings_of(build_parser(environment).parse_args(["run", "--namespace=other", "--alignment=report"]))
    assert (settings.placement, settings.namespace, settings.alignment) == (False, "other", AlignMode.REPORT)
    assert settings.webhook_port == 9443


def test_each_replica_has_an_identity_of_its_own() -> None:
    """Two processes of one machine are two replicas."""
    parser = build_parser({})
    first, second = (settings_of(parser.parse_args(["run"])) for _ in range(2))
    assert first.identity != second.identity


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    """The help says what it does and names the environment variable of each option."""
    with pytest.raises(SystemExit) as end:
        main(["run", "--help"])
    told = capsys.readouterr().out
    assert end.value.code == 0
    assert "CTA_GROUP_OPERATOR_WEBHOOK_PORT" in told
    assert "ResourceQuotas" in told


@pytest.mark.parametrize(
    "flags", [["--placement=maybe"], ["--webhook-port=70000"], ["--resource-name=cta"], ["--metrics-address=here"], []]
)
def test_wrong_input_ends_with_two(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A setting that is wrong, and a command that is missing, end with status 2 and a sentence."""
    with pytest.raises(SystemExit) as end:
        main(["run", *flags] if flags else [])
    assert end.value.code == 2
    assert capsys.readouterr().err


def test_wrong_environment_is_named() -> None:
    """A wrong environment variable is named together with what is allowed."""
    with pytest.raises(BadSetting, match="CTA_GROUP_OPERATOR_ALIGNMENT=x: must be one of on, report, off"):
        build_parser({"CTA_GROUP_OPERATOR_ALIGNMENT": "x"})


def test_kubeconfig_that_is_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A kubeconfig that cannot be read is named, with status 2."""
    assert main(["run", f"--kubeconfig={tmp_path / 'absent'}", "--log-level=error"]) == 2
    assert "absent" in capsys.readouterr().err


def test_own_namespace(tmp_path: Path) -> None:
    """In a pod the namespace is the pod's; outside it is the default."""
    file = tmp_path / "namespace"
    assert own_namespace("default", file) == "default"
    file.write_text("gpu\n")
    assert own_namespace("default", file) == "gpu"
