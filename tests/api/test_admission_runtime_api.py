"""Runtime classes behind a real API server, which has its own word about them: after the webhook, as it must be."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from admission_endpoint import EndpointThread, webhook_configuration
from cluster_harness.api_client import ApiClient
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_RUNTIME_ADVICE, LABEL_REQUESTS
from cta_group_operator.admission.settings import PodRules
from group_pods import asking

Json = dict[str, Any]
Create = Callable[[Json, str], Json]
_CONFIGURATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
_OVERHEAD = {"podFixed": {"memory": "16Mi"}}


@pytest.fixture
def create(api: ApiClient, namespace: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Create]:
    """Return how pods are made in the test's namespace, whose webhook gives or asks for the class of that name."""
    rules = PodRules(runtime_class=namespace, sets_runtime_class=request.param)
    pods = f"/api/v1/namespaces/{namespace}/pods"
    with ExitStack() as undo:
        endpoint = EndpointThread(tmp_path, rules)
        undo.callback(endpoint.close)
        name = f"runtime-{namespace}"
        api.create(_CONFIGURATIONS, webhook_configuration(name, endpoint.conversation, namespace))
        undo.callback(api.delete, f"{_CONFIGURATIONS}/{name}")
        api.create(_CLASSES, {"metadata": {"name": f"{namespace}-probe"}, "handler": "probe"})
        undo.callback(api.delete, f"{_CLASSES}/{namespace}-probe")

        def is_called() -> bool:
            probe = asking(8)
            probe["spec"]["runtimeClassName"] = f"{namespace}-probe"
            return LABEL_REQUESTS in api.create(f"{pods}?dryRun=All", probe)["metadata"].get("labels", {})

        wait_for(is_called, "the API server to call the webhook")
        yield lambda pod, query: api.create(f"{pods}{query}", pod)


@pytest.fixture
def nvidia(api: ApiClient, namespace: str) -> Iterator[str]:
    """Make the class that brings GPUs, with an overhead that the API server writes into its pods."""
    api.create(_CLASSES, {"metadata": {"name": namespace}, "handler": "nvidia", "overhead": _OVERHEAD})
    yield namespace
    api.delete(f"{_CLASSES}/{namespace}")


@pytest.mark.parametrize("create", [True], indirect=True)
def test_the_class_is_set_and_the_api_server_goes_by_it(create: Create, nvidia: str) -> None:
    """Its own part, such as the overhead of the class, is done for pods that got the class from the webhook too."""

    def made() -> Json:
        return create(asking(32), "?dryRun=All")

    wait_for(lambda: made()["spec"].get("overhead") == _OVERHEAD["podFixed"], "the API server to know the class")
    assert made()["spec"]["runtimeClassName"] == nvidia


@pytest.mark.parametrize("create", [True], indirect=True)
def test_a_class_that_does_not_exist_refuses_the_pod_by_name(create: Create, namespace: str) -> None:
    """Rather than running without its GPU; whoever creates it reads what is missing."""
    with pytest.raises(ApiError) as refused:
        create(asking(32), "")
    assert f'RuntimeClass "{namespace}" not found' in refused.value.sentence


@pytest.mark.parametrize("create", [False], indirect=True)
def test_a_pod_that_is_only_told_comes_in(create: Create, namespace: str) -> None:
    """Nobody is locked out by a setting that says report, whether or not the class exists."""
    pod = create(asking(32), "")
    assert "runtimeClassName" not in pod["spec"]
    assert f"set runtimeClassName: {namespace}" in pod["metadata"]["annotations"][ANNOTATION_RUNTIME_ADVICE]
