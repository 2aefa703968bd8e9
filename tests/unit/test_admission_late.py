"""What a pod that came past admission is told."""

import pytest

from admission_pods import FITS_H100_QUARTER, FLAG, H100, Json, annotated, known_gpus, server_pod
from cta_group_operator.admission.late import late_advice
from cta_group_operator.admission.settings import PodRules


@pytest.mark.parametrize(
    ("pod", "flags"),
    [
        (server_pod("m"), [FLAG, "--max-num-seqs", "--max-num-batched-tokens", "--max-model-len"]),
        (server_pod("m", f"{FLAG}={FITS_H100_QUARTER}"), []),
        (annotated(server_pod("m"), align="off"), []),
        (server_pod("m", groups=None), []),
        ({"metadata": {}, "spec": {"containers": "none"}}, []),
    ],
)
def test_the_arguments_that_it_would_have_got(pod: Json, flags: list[str]) -> None:
    """All of them with their reasons; nothing where they fit, are nobody's business, or the pod is none."""
    told = late_advice(pod, PodRules(), H100)
    assert [flag for flag in flags if f"{flag}=" in told] == flags
    assert bool(told) is bool(flags)


def test_variables_that_come_from_elsewhere_hide_no_server() -> None:
    """A server whose environment names Secrets and ConfigMaps is told the same."""
    pod = server_pod("m")
    (container,) = pod["spec"]["containers"]
    container["env"] = [{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "hub", "key": "token"}}}]
    container["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    assert f"{FLAG}=" in late_advice(pod, PodRules(), H100)


def test_nothing_is_told_while_no_gpu_is_known() -> None:
    """A guess would be worse."""
    assert late_advice(server_pod("m"), PodRules(), known_gpus()) == ""
