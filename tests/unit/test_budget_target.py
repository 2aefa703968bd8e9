"""Where the metrics of a server are, from what its template says."""

from typing import Any

import pytest

from cta_group_core.budget.target import MetricsTarget, served_by
from cta_group_core.names import ANNOTATION_METRICS_PORT
from cta_group_core.vllm.detect import ContainerFacts
from cta_group_core.vllm.surroundings import Surroundings

IMAGE = "vllm/vllm-openai:v0.27.1"
PORT = "prometheus.io/port"


def vllm(*args: str, **changes: Any) -> ContainerFacts:
    """Return a vLLM container."""
    return ContainerFacts(**{"name": "vllm", "image": IMAGE, "args": ("m", *args), **changes})


@pytest.mark.parametrize(
    ("container", "annotations", "port"),
    [
        (vllm(), {}, 8000),
        (vllm("--port=8200", ports=(8000,)), {}, 8200),
        (vllm("--port", "1", "--port", "8300"), {PORT: "9000"}, 8300),
        (vllm("--port=$(PORT)", surroundings=Surroundings({"PORT": "8400"})), {}, 8400),
        (vllm("--port=$(PORT)", ports=(8500,)), {}, 8500),
        (vllm("--port=99999", ports=(8500,)), {}, 8500),
        (vllm(ports=(8600,)), {}, 8600),
        (vllm(ports=(8600, 9000)), {}, 8000),
        (vllm(ports=(8600,)), {PORT: "8700"}, 8700),
        (vllm(ports=(8600,)), {PORT: "http"}, 8600),
        (vllm("--port=8200"), {ANNOTATION_METRICS_PORT: "9100"}, 9100),
        (ContainerFacts("main", "example.com/own:1"), {ANNOTATION_METRICS_PORT: "9100"}, 9100),
        (ContainerFacts("main", "a:1", ("sh", "-c"), ("exec vllm serve m --port 8800",)), {}, 8800),
    ],
)
def test_the_port_is_found(container: ContainerFacts, annotations: dict[str, str], port: int) -> None:
    """Our annotation, the argument that wins, Prometheus' annotation, the only port, vLLM's default."""
    served = served_by([ContainerFacts("proxy", "envoy:1", ports=(15020,)), container], {}, annotations)
    assert (served.target, served.problem) == (MetricsTarget(port), "")


@pytest.mark.parametrize(
    ("container", "annotations"), [(vllm("--ssl-certfile=/c"), {}), (vllm(), {"prometheus.io/scheme": "https"})]
)
def test_a_server_with_a_certificate_is_asked_by_tls(container: ContainerFacts, annotations: dict[str, str]) -> None:
    """Its own flag, or the annotation for a proxy before it."""
    assert served_by([container], {}, annotations).target == MetricsTarget(8000, https=True)


@pytest.mark.parametrize(
    ("containers", "annotations", "said"),
    [
        ([ContainerFacts("main", "redis:7")], {}, "no container looks like vLLM; name it in ctagroup.dev/container"),
        ([vllm(), vllm(name="main")], {}, "containers vllm, main look alike"),
        ([vllm("--uds=/run/vllm.sock")], {}, "Unix socket"),
        ([vllm()], {ANNOTATION_METRICS_PORT: "0"}, "'0' is no port (1 to 65535)"),
        ([vllm()], {ANNOTATION_METRICS_PORT: "65536"}, "'65536' is no port"),
        ([vllm()], {ANNOTATION_METRICS_PORT: "http"}, "'http' is no port"),
    ],
)
def test_why_there_is_no_port_is_said(containers: list[ContainerFacts], annotations: dict[str, str], said: str) -> None:
    """With what to write instead."""
    served = served_by(containers, {}, annotations)
    assert served.target is None
    assert said in served.problem
