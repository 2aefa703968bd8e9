"""The command line: flag, then environment, then default; a wrong value is a sentence and exit code 2."""

from pathlib import Path

import pytest

from cta_group_plugin.cli import build_parser, main, mps_settings, run_settings
from cta_group_plugin.errors import BadSetting
from cta_group_plugin.settings import EnforcementSettings, MpsSettings, RunSettings, SourceKind


def run_with(*arguments: str, **environment: str) -> RunSettings:
    """Return the settings of ``run``."""
    return run_settings(build_parser(environment).parse_args(["run", *arguments]))


def mps_with(*arguments: str, **environment: str) -> MpsSettings:
    """Return the settings of ``mps``."""
    return mps_settings(build_parser(environment).parse_args(["mps", *arguments]), environment)


def test_defaults_are_those_of_the_settings() -> None:
    """The command line adds no default of its own, but for the supervisor's socket of a real node."""
    node = run_with("--node-name", "node-a")
    assert node == RunSettings(node_name="node-a", mps_socket=Path("/run/cta-group/mps/supervisor.sock"))


def test_flag_wins_over_environment_wins_over_default() -> None:
    """The nearest to the person counts."""
    assert run_with().count == 8
    assert run_with(CTA_GROUP_PLUGIN_COUNT="3").count == 3
    assert run_with("--count", "5", CTA_GROUP_PLUGIN_COUNT="3").count == 5


def test_simulated_gpus_have_a_simulated_supervisor_unless_one_is_named() -> None:
    """Without a socket the supervisor is simulated in the process, but only where the GPUs are."""
    assert run_with("--source", "simulated").mps_socket is None
    assert run_with("--source", "simulated", "--mps-socket", "/s").mps_socket == Path("/s")
    assert run_with("--mps-root", "/m").mps_socket == Path("/m/supervisor.sock")
    assert run_with("--source", "simulated").source is SourceKind.SIMULATED


def test_switches_come_from_the_environment_too() -> None:
    """Each enforced dimension can be switched off by flag or by environment."""
    assert run_with("--no-enforce-compute").enforcement == EnforcementSettings(compute=False)
    assert run_with(CTA_GROUP_PLUGIN_ENFORCE_MEMORY="false").enforcement == EnforcementSettings(memory=False)
    assert run_with("--enforce-memory", CTA_GROUP_PLUGIN_ENFORCE_MEMORY="no").enforcement == EnforcementSettings()


def test_health_is_remembered_unless_there_is_nothing_to_remember() -> None:
    """Simulated GPUs have no folder by default, and an empty one switches it off."""
    assert run_with().health.state_dir == Path("/var/lib/cta-group")
    assert run_with("--source", "simulated").health.state_dir is None
    assert run_with("--source", "simulated", "--state-dir", "/s").health.state_dir == Path("/s")
    assert run_with("--state-dir", "").health.state_dir is None
    assert run_with(CTA_GROUP_PLUGIN_STATE_DIR="").health.state_dir is None


def test_health_can_be_set() -> None:
    """XID classes, clean polls and their distance."""
    health = run_with(
        "--xid-policy", '{"fatal": [13]}', "--health-clean-polls", "7", CTA_GROUP_PLUGIN_POLL_SECONDS="2"
    ).health
    assert health.rules.policy.rule_of(13).xid_class == "fatal"
    assert (health.rules.clean_polls, health.poll_seconds) == (7, 2.0)


def test_pod_finds_its_own_api_server() -> None:
    """The address that kubelet gives every container is the default; IPv6 is written as URLs want it."""
    assert run_with(KUBERNETES_SERVICE_HOST="10.0.0.1", KUBERNETES_SERVICE_PORT="6443").api_server == (
        "https://10.0.0.1:6443"
    )
    assert run_with(KUBERNETES_SERVICE_HOST="fd00::1").api_server == "https://[fd00::1]:443"
    assert run_with().api_server == ""


def test_supervisor_serves_in_its_folder() -> None:
    """The socket follows the folder unless it is named."""
    assert mps_with("--mps-root", "/m").mps_socket == Path("/m/supervisor.sock")
    assert mps_with("--mps-root", "/m", "--mps-socket", "/s").mps_socket == Path("/s")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--profile", "h100"], "GPU profile 'h100' is not known; known: h100-sxm"),
        (["--count", "-1"], "must be a whole number from 0 to 64"),
        (["--max-clients", "61"], "must be a whole number from 0 to 60"),
        (["--device-list", "volume-mounts"], "must be one of envvar, cdi"),
        (["--cdi-gpu-kind", "nvidia.com"], "must look like nvidia.com/gpu, or be empty"),
        (["--xid-policy", '{"deadly": [1]}'], "'deadly' is no class that can be set"),
        (["--health-clean-polls", "0"], "must be a whole number from 1 to 100"),
        (["--metrics-address", "9400"], "must look like 0.0.0.0:9400"),
        (["--resource-name", "cta-group"], "must look like nvidia.com/cta-group"),
        (["--source", "mig"], "must be one of nvml, simulated"),
        (["--api-server", "10.0.0.1"], "must look like https://host:port"),
        (["--device-plugin-dir", ""], "must not be empty"),
        *(
            (["--api-server", url], "must look like https://host:port")
            for url in (
                "https://",
                "https://a:99999",
                "https://a:b",
                "https://[::1",
                "https://a b",
                "https://a?b",
                "ftp://a",
            )
        ),
        *(
            (["--node-name", name], "must be the node's name in Kubernetes: lower case letters")
            for name in ("", "a/b", "../a", "Node", "a..b", "a-", "a_b", "a" * 254, "a\x00")
        ),
        *(
            (["--resource-name", name], "must look like nvidia.com/cta-group and not lie under kubernetes.io")
            for name in (
                "a b/c",
                "nvidia.com/cta group",
                "nvidia.com/a/b",
                "NVIDIA.com/a",
                "nvidia.com/",
                "a/" + "b" * 64,
            )
        ),
        (["--gpu-include", "9" * 5000], "an index has 9 digits at most"),
        (["--gpu-exclude", ","], "must be a UUID (GPU-...), an index, or a product"),
        (["--gpu-override", "[" * 100_000], "not JSON"),
        (["--xid-policy", '{"fatal": [1e400]}'], "a code is a whole number above 0"),
    ],
)
def test_wrong_flag_ends_with_a_sentence(
    arguments: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong value names the flag, the value and what is allowed, with exit code 2."""
    with pytest.raises(SystemExit) as ended:
        main(["run", *arguments])
    assert ended.value.code == 2
    told = capsys.readouterr().err
    assert sentence in told
    assert f"{arguments[0]}={arguments[1]}" in told


def test_wrong_environment_variable_names_itself() -> None:
    """A value from the environment is not blamed on a flag."""
    with pytest.raises(BadSetting, match="CTA_GROUP_PLUGIN_COUNT=many: must be a whole number"):
        run_with(CTA_GROUP_PLUGIN_COUNT="many")
    with pytest.raises(BadSetting, match="CTA_GROUP_PLUGIN_PUBLISH=perhaps: must be true or false"):
        run_with(CTA_GROUP_PLUGIN_PUBLISH="perhaps")


def test_publishing_outside_a_cluster_is_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without an API server the command says which flag helps."""
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    arguments = ["run", "--source", "simulated", "--device-plugin-dir", str(tmp_path), "--metrics-address", ""]
    assert main(arguments) == 2
    assert "give --api-server, or --no-publish" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "mps"])
def test_help_names_the_environment_variable_of_each_option(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    """``--help`` teaches both ways in."""
    with pytest.raises(SystemExit):
        main([command, "--help"])
    told = capsys.readouterr().out
    flags = [word.strip("[],") for word in told.split() if word.strip("[],").startswith("--")]
    for flag in {flag for flag in flags if flag != "--help" and not flag.startswith("--no-")}:
        assert f"CTA_GROUP_PLUGIN_{flag[2:].replace('-', '_').upper()}" in told.replace("\n", " ")
