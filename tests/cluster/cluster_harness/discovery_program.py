"""``python -m cluster_harness.discovery_program HOST PORT CREDENTIALS FOLDER``: writes Prometheus' targets for ever.

It runs inside the cluster, asks the API server at HOST:PORT once a second as the administrator of the folder
CREDENTIALS, and writes pods.json and endpoints.json into FOLDER when they change.
"""

import http.client
import json
import sys
import time
from pathlib import Path

from cluster_harness.api_client import ApiClient
from cluster_harness.certs import KeyPair
from cluster_harness.control_plane_spec import ADMIN
from cluster_harness.discovery import endpoint_targets, pod_targets
from cluster_harness.errors import ApiError
from cluster_harness.scrape_jobs import ENDPOINTS_FILE, PODS_FILE, Json

_PERIOD_SECONDS = 1.0


def write_targets(api: ApiClient, folder: Path) -> None:
    """Ask once and write what changed."""
    pods = api.items("/api/v1/pods")
    services = api.items("/api/v1/services")
    slices = api.items("/apis/discovery.k8s.io/v1/endpointslices")
    _replace(folder / PODS_FILE, pod_targets(pods))
    _replace(folder / ENDPOINTS_FILE, endpoint_targets(slices, services, pods))


def main() -> None:
    """Write the targets until somebody ends this process; an API server that is away leaves them as they are."""
    host, port, credentials, folder = sys.argv[1:]
    api = ApiClient(host, int(port), Path(credentials) / "ca.crt", KeyPair.named(Path(credentials), ADMIN))
    while True:
        try:
            write_targets(api, Path(folder))
        except (OSError, http.client.HTTPException, ApiError) as error:
            print(f"targets stay as they are: {error}", flush=True)
        time.sleep(_PERIOD_SECONDS)


def _replace(path: Path, targets: list[Json]) -> None:
    """Write the file in one step, and only when it changes: Prometheus reads it again each time."""
    text = json.dumps(targets, sort_keys=True)
    if path.exists() and path.read_text() == text:
        return
    fresh = path.with_suffix(".new")
    fresh.write_text(text)
    fresh.replace(path)


if __name__ == "__main__":
    main()
