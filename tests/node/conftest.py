"""A real Kubernetes with one node that runs pods, shared by the tests of this folder."""

from collections.abc import Iterator

import pytest

from cluster_harness.base_images import ensure_busybox_archive
from cluster_harness.cluster import Cluster


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """One cluster for all tests, with the busybox image; whoever stops a component of it starts it again."""
    with Cluster.start() as running:
        running.import_image(ensure_busybox_archive())
        yield running


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """Make a namespace for one test; its removal begins when the test ends and goes on in the background."""
    name = cluster.api.create("/api/v1/namespaces", {"metadata": {"generateName": "test-"}})["metadata"]["name"]
    yield name
    cluster.api.delete(f"/api/v1/namespaces/{name}")
