"""Takes the project's kinds off a control plane of the tests."""

from chart_rendering import ROOT
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import API_GROUP
from kubectl import Kubectl

_KINDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def remove_kinds(control_plane: ControlPlane) -> None:
    """Delete the project's kinds with all their objects; return when they are gone.

    Each kind is asked for its objects first. The API server opens the store of a kind at the first question about it.
    Where that is the one of the kind's own deletion it fails ("storage is (re)initializing"), and the try after it may
    meet an old copy and be dropped until the next resync, five minutes later (kube-apiserver 1.37, crd_finalizer.go).
    """
    api = control_plane.api
    ours = [kind for kind in api.items(_KINDS) if kind["spec"]["group"] == API_GROUP]
    wait_for(lambda: all(_is_listed(api, kind) for kind in ours), "the objects of every kind to be listed")
    done = Kubectl.admin(control_plane).run("delete", "-f", str(ROOT / "crds"), "--wait", "--ignore-not-found")
    assert done.returncode == 0, done.stderr


def _is_listed(api: ApiClient, kind: Json) -> bool:
    spec = kind["spec"]
    try:
        api.get(f"/apis/{spec['group']}/{spec['versions'][0]['name']}/{spec['names']['plural']}")
    except ApiError:
        return False
    return True
