"""Whether the API server's own admission lets a pod in."""

from cluster_harness.api_client import ApiClient, Json
from cluster_harness.errors import ApiError


def refusal(api: ApiClient, namespace: str, pod: Json) -> str | None:
    """Create a pod without keeping it; return the sentence by which it is refused, None when it is let in."""
    try:
        api.create(f"/api/v1/namespaces/{namespace}/pods?dryRun=All", pod)
    except ApiError as error:
        return error.sentence
    return None
