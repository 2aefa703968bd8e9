"""Each policy about a pod's creation refuses what it must, says what to write instead, and touches nothing else."""

from collections.abc import Callable

import pytest

import refused_pods
from cluster_harness.api_client import ApiClient, Json
from cluster_harness.control_plane import ControlPlane
from cluster_harness.errors import ApiError
from cluster_harness.waiting import wait_for
from cta_group_core.names import ANNOTATION_GROUPS, ANNOTATION_MULTI_CONTAINER, PROTECTED_ENV
from group_pods import asking, container, pod
from kubectl import Kubectl

Refusal = Callable[[Json], str | None]


def _denied(policy: str, words: str) -> str:
    by = f"ValidatingAdmissionPolicy 'cta-group-{policy}' with binding 'cta-group-{policy}'"
    return f'pods "tenant" is forbidden: {by} denied request: {words}'


@pytest.fixture
def refusal(api: ApiClient, tenants: str) -> Refusal:
    """Return a function that tells why a pod is refused, None when it is let in; no pod is kept."""
    return lambda made: refused_pods.refusal(api, tenants, made)


@pytest.mark.parametrize("groups", [8, 16, 32, 96, 120, 128, 256, 1024])
def test_whole_steps_and_whole_gpus_are_let_in(refusal: Refusal, groups: int) -> None:
    """8 to 128 in steps of 8, and multiples of 128, are what an H100 takes."""
    assert refusal(asking(groups)) is None


@pytest.mark.parametrize("groups", [1, 4, 12, 127, 132, 160, 192, "1e30"])
def test_a_size_that_no_gpu_takes_is_refused_with_what_to_write(refusal: Refusal, groups: int | str) -> None:
    """12 groups on a cluster of H100 never reach a node, and the message says which sizes would."""
    words = "; ask for 8 to 128 in steps of 8 (one GPU), or a multiple of 128 (whole GPUs)"
    assert refusal(asking(groups)) == _denied("units", f"container main asks for nvidia.com/cta-group: {groups}{words}")


def test_a_sidecar_of_a_wrong_size_is_named(refusal: Refusal) -> None:
    """Every container is judged, and the message names the one that is wrong."""
    sidecar = container("load", groups=12) | {"restartPolicy": "Always"}
    words = "container load asks for nvidia.com/cta-group: 12; ask for 8"
    assert words in (refusal(pod(container(), initial=[sidecar])) or "")


@pytest.mark.parametrize("groups", ["0", "0.032k", "32"])
def test_zero_asks_for_nothing_and_other_spellings_are_understood(refusal: Refusal, groups: str) -> None:
    """Kubernetes' own ways to write a number are read as it reads them."""
    assert refusal(asking(groups)) is None


@pytest.mark.parametrize("text", ["many", "0", "000", "-8", "8.5", "32 groups", "1000000000", ""])
def test_an_annotation_that_is_no_number_is_refused(refusal: Refusal, text: str) -> None:
    """A pod that asks in words would run without its slice; the message says what to write."""
    words = "ask for 8 to 128 in steps of 8 (one GPU), or a multiple of 128 (whole GPUs)"
    told = f"annotation ctagroup.dev/groups: {text} is no whole number above 0; {words}"
    assert refusal(pod(container(), annotations={ANNOTATION_GROUPS: text})) == _denied("units", told)


@pytest.mark.parametrize(
    ("policy", "made", "words"),
    [
        (
            "units",
            pod(container(), annotations={ANNOTATION_GROUPS: "32\ngroups"}),
            "annotation ctagroup.dev/groups is no whole number above 0; ask for 8 to 128 in steps of 8",
        ),
        (
            "environment",
            pod(container(groups=32, env={f"CUDA_MPS_{'A' * 60}{index}": "1" for index in range(100)})),
            "containers set variables of CUDA MPS or NVIDIA_VISIBLE_DEVICES: remove them",
        ),
    ],
    ids=["line break", "long"],
)
def test_what_the_api_server_does_not_show_has_fixed_words(
    refusal: Refusal, policy: str, made: Json, words: str
) -> None:
    """A composed message with a line break, or a very long one, is dropped; then the policy says it in general."""
    assert (refusal(made) or "").startswith(_denied(policy, words))


def test_an_annotation_that_is_a_number_is_let_in(refusal: Refusal) -> None:
    """Also while nobody turns it into a request; and a pod that asks by itself may say there what it likes."""
    assert refusal(pod(container(), annotations={ANNOTATION_GROUPS: "32"})) is None
    assert refusal(pod(container(groups=32), annotations={ANNOTATION_GROUPS: "many"})) is None


def test_the_api_server_itself_refuses_parts_and_requests_that_differ(refusal: Refusal) -> None:
    """Whole numbers and limits equal to requests need no policy: Kubernetes demands both of such a resource."""
    assert "must be an integer" in (refusal(asking("8500m")) or "")
    uneven = container(groups=32)
    uneven["resources"]["requests"] = {"nvidia.com/cta-group": "16"}
    assert "must be equal to nvidia.com/cta-group limit" in (refusal(pod(uneven)) or "")
    unlimited = container() | {"resources": {"requests": {"nvidia.com/cta-group": "32"}}}
    assert "Limit must be set for non overcommitable resources" in (refusal(pod(unlimited)) or "")


@pytest.mark.parametrize("name", ["CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "CUDA_MPS_ANYTHING_NEW", *PROTECTED_ENV])
def test_a_pod_of_the_resource_may_not_set_the_limits_itself(refusal: Refusal, name: str) -> None:
    """A variable of the pod would replace the one that limits its slice."""
    words = f"container main sets {name}: remove it, nvidia.com/cta-group sets it for the slice that the pod gets"
    assert refusal(pod(container(groups=32, env={"A": "1", name: "100"}))) == _denied("environment", words)


def test_all_forbidden_variables_are_told_at_once(refusal: Refusal) -> None:
    """One refusal names every container and variable, so that nobody has to try again and again."""
    side = container("side", env={"NVIDIA_VISIBLE_DEVICES": "all"})
    made = pod(container(groups=32, env={"CUDA_MPS_A": "1", "CUDA_MPS_B": "1"}), side)
    words = "container main sets CUDA_MPS_A, CUDA_MPS_B; container side sets NVIDIA_VISIBLE_DEVICES: remove it"
    assert words in (refusal(made) or "")


def test_a_container_without_groups_may_say_that_it_sees_no_gpu(refusal: Refusal) -> None:
    """``void`` keeps a runtime from giving devices to a sidecar; only the container with groups must not say it."""
    nothing = {"NVIDIA_VISIBLE_DEVICES": "void"}
    assert refusal(pod(container(groups=32), container("side", env=nothing))) is None
    assert "sets NVIDIA_VISIBLE_DEVICES" in (refusal(pod(container(groups=32, env=nothing))) or "")


@pytest.mark.parametrize("other", ["nvidia.com/gpu", "nvidia.com/gpu.shared"])
def test_groups_and_whole_gpus_of_another_plugin_do_not_mix(refusal: Refusal, other: str) -> None:
    """Two plugins would each give the pod a GPU, and the one without limits would win."""
    both = container(groups=32)
    both["resources"]["limits"][other] = "1"
    words = (
        f"the pod asks for nvidia.com/cta-group and for {other}; "
        "ask for nvidia.com/cta-group only: a whole GPU is 128 of it"
    )
    assert refusal(pod(both)) == _denied("exclusive", words)


def test_two_containers_that_ask_are_refused_unless_the_pod_accepts_it(refusal: Refusal) -> None:
    """The kubelet asks for each container by itself, so two may land on two GPUs; an annotation accepts that."""
    two = [container("a", groups=32), container("b", groups=32)]
    words = (
        "containers a, b ask for nvidia.com/cta-group: the kubelet may put them on different GPUs; let one container "
        'ask, or accept that with the annotation ctagroup.dev/multi-container: "true"'
    )
    assert refusal(pod(*two)) == _denied("containers", words)
    assert refusal(pod(*two, annotations={ANNOTATION_MULTI_CONTAINER: "true"})) is None


def test_an_init_container_that_asks_is_refused_and_a_sidecar_counts_as_a_container(refusal: Refusal) -> None:
    """A finished init container's groups end a running pod when the kubelet restarts; a sidecar's do not."""
    words = (
        "init container load asks for nvidia.com/cta-group: a restart of the kubelet would then end the running pod; "
        "let only a container ask, and do there what needs the GPU"
    )
    assert refusal(pod(container(), initial=[container("load", groups=32)])) == _denied("containers", words)
    sidecar = container("side", groups=32) | {"restartPolicy": "Always"}
    assert refusal(pod(container(), initial=[sidecar])) is None
    assert "containers main, side ask" in (refusal(pod(container(groups=32), initial=[sidecar])) or "")


def test_pods_that_do_not_ask_are_left_alone(refusal: Refusal) -> None:
    """Whatever a pod without the resource says, none of the policies has an opinion."""
    free = {"CUDA_MPS_PIPE_DIRECTORY": "/tmp/nvidia-mps", "NVIDIA_VISIBLE_DEVICES": "all"}  # noqa: S108 - NVIDIA's place
    gpu = container(env=free) | {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
    assert refusal(pod(gpu, container("b", env=free), initial=[container("c", env=free)])) is None


@pytest.mark.usefixtures("policies")
def test_kube_system_is_left_alone(api: ApiClient) -> None:
    """What keeps the cluster running is never refused, even if it breaks every rule."""
    wrong = pod(container(groups=12, env={"CUDA_MPS_A": "1"}), container("b", groups=12))
    assert refused_pods.refusal(api, "kube-system", wrong) is None


class TestDebugContainers:
    """``kubectl debug`` on a pod that holds groups."""

    @pytest.fixture
    def running(self, api: ApiClient, tenants: str) -> str:
        """Make a pod with groups and return its path."""
        api.create(f"/api/v1/namespaces/{tenants}/pods", asking(16))
        return f"/api/v1/namespaces/{tenants}/pods/tenant"

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "100"),
            ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", "0=80G"),
            ("NVIDIA_VISIBLE_DEVICES", "all"),
        ],
    )
    def test_one_that_sets_a_limit_is_refused_as_a_container_is(
        self, api: ApiClient, running: str, name: str, value: str
    ) -> None:
        """Debug containers come through a subresource; the rule and its words are the same there."""
        debugger = container("debugger", env={name: value})
        words = (
            f"container debugger sets {name}: remove it, nvidia.com/cta-group sets it for the slice that the pod gets"
        )
        with pytest.raises(ApiError) as refused:
            api.patch(f"{running}/ephemeralcontainers", {"spec": {"ephemeralContainers": [debugger]}})
        assert refused.value.sentence == _denied("environment", words)

    @pytest.mark.usefixtures("running")
    def test_a_plain_one_works(self, control_plane: ControlPlane, api: ApiClient, tenants: str) -> None:
        """People need to look into a pod that holds groups, with the restricted profile too."""
        debug = ("debug", "tenant", "--image=localhost/none:1", "--profile=restricted", "--container=look")
        done = Kubectl.admin(control_plane).run(f"--namespace={tenants}", *debug)
        assert done.returncode == 0, done.stderr
        stored = api.get(f"/api/v1/namespaces/{tenants}/pods/tenant")
        assert [made["name"] for made in stored["spec"]["ephemeralContainers"]] == ["look"]

    @pytest.mark.usefixtures("running")
    def test_one_holds_no_groups(self, api: ApiClient, tenants: str) -> None:
        """It may be added where the quota is full, and what the quota counts stays as it was."""
        path = f"/api/v1/namespaces/{tenants}"
        key = "requests.nvidia.com/cta-group"
        api.create(f"{path}/resourcequotas", {"metadata": {"name": "full"}, "spec": {"hard": {key: "16"}}})

        def used() -> str | None:
            counted: str | None = api.get(f"{path}/resourcequotas/full").get("status", {}).get("used", {}).get(key)
            return counted

        wait_for(lambda: used() == "16", "the quota to be counted")
        look = {"spec": {"ephemeralContainers": [container("look")]}}
        stored = api.patch(f"{path}/pods/tenant/ephemeralcontainers", look)
        assert "resources" not in {key for key, value in stored["spec"]["ephemeralContainers"][0].items() if value}
        assert used() == "16"

    def test_an_old_pod_may_be_looked_into_whatever_it_sets(self, api: ApiClient, tenants: str) -> None:
        """A pod from before the policy cannot be changed any more, so only what is added is judged."""
        path = f"/api/v1/namespaces/{tenants}"
        old = pod(container(groups=16, env={"CUDA_MPS_A": "1"}))
        api.patch(path, {"metadata": {"labels": {"policies-of-these-tests": None}}})
        wait_for(lambda: refused_pods.refusal(api, tenants, old) is None, "the policies to leave the namespace alone")
        api.create(f"{path}/pods", old)
        api.patch(path, {"metadata": {"labels": {"policies-of-these-tests": "on"}}})
        newer = old | {"metadata": {"name": "newer"}}
        wait_for(lambda: refused_pods.refusal(api, tenants, newer), "the policies to look at it again")
        debugger = {"spec": {"ephemeralContainers": [container("debugger")]}}
        stored = api.patch(f"{path}/pods/tenant/ephemeralcontainers", debugger)
        assert stored["spec"]["ephemeralContainers"][0]["name"] == "debugger"
