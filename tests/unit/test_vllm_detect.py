"""Finding the vLLM container in a pod."""

import pytest

from cta_group_core.vllm.detect import ContainerFacts, detect, image_version

OFFICIAL = ContainerFacts("engine", image="vllm/vllm-openai:v0.27.1", args=("m",))
SIDECAR = ContainerFacts("proxy", image="registry.example:5000/routing-proxy:v1", ports=(8000,))


def found_name(*containers: ContainerFacts, named: str | None = None, **labels: str) -> str | None:
    """Return the name of the container that is taken for vLLM."""
    found = detect(containers, labels, named=named).found
    return None if found is None else found.container.name


@pytest.mark.parametrize(
    "container",
    [
        OFFICIAL,
        ContainerFacts("a", image="ghcr.io/llm-d/llm-d-cuda:v0.2.0", args=("m",)),
        ContainerFacts("a", image="acme/ai:1", command=("vllm", "serve", "m")),
        ContainerFacts("a", image="acme/ai:1", command=("/opt/venv/bin/vllm", "serve"), args=("m",)),
        ContainerFacts("a", image="acme/ai:1", command=("python3", "-m", "vllm.entrypoints.openai.api_server")),
        ContainerFacts("a", image="acme/ai:1", command=("bash", "-c", "pip install x && vllm serve m")),
        ContainerFacts("a", image="acme/ai:1", command=("/bin/sh", "-c", "python3 /w/inference_api.py --port 1")),
        ContainerFacts("a", image="acme/ai:1", command=("python3", "/workspace/inference_api.py")),
        ContainerFacts("a", image="acme/my-vllm:1.0", args=("m", "--max-model-len=8192")),
        ContainerFacts("vllm", image="acme/my-vllm:1.0", args=("m",)),
        ContainerFacts("a", image="acme/my-vllm:1.0", args=("serve", "m")),
        ContainerFacts("a", image="acme/ai:1", command=("vllm", "run-batch", "-i", "x", "--model", "m")),
        ContainerFacts("a", image="acme/ai:1", command=("sh", "-c", "vllm bench throughput --model m")),
        ContainerFacts("server", image="acme/ai:1", args=("serve", "m", "--max-num-seqs=8"), ports=(8000,)),
        ContainerFacts("a", image="acme/ai:1", command=("python3", "/x/vllm/entrypoints/openai/api_server.py")),
        ContainerFacts("a", image="acme/ai:1", command=("python3", "-m", "dynamo.vllm"), args=("--model", "m")),
        ContainerFacts("a", image="acme/ai:1", command=("vllm serve m --port 1",)),
        ContainerFacts("vllm", image="acme/vllm-cpu:1", ports=(8000,), probe_paths=("/health",), args=("m",)),
    ],
)
def test_vllm_is_recognised_beside_a_sidecar(container: ContainerFacts) -> None:
    """By image, by command in every form, or by several weaker signs together; never by its position."""
    assert found_name(SIDECAR, container) == container.name


@pytest.mark.parametrize(
    "container",
    [
        SIDECAR,
        ContainerFacts("server", image="lmsys/sglang:v0.5", args=("--model", "m", "--port", "8000"), ports=(8000,)),
        ContainerFacts("main", image="ghcr.io/llm-d/llm-d-inference-sim:v0.5", args=("--model", "m")),
        ContainerFacts("main", image="acme/llm-d-inference-sim:1", command=("vllm", "serve", "m")),
        ContainerFacts("vllm", image="acme/exporter:1"),
        ContainerFacts("loader", image="vllm/vllm-openai:v0.27.1", command=("python3", "download.py"), ports=(8000,)),
        ContainerFacts("client", image="acme/ai:1", command=("vllm", "bench", "serve", "--model", "m")),
    ],
)
def test_what_is_not_vllm_is_left_alone(container: ContainerFacts) -> None:
    """One weak sign is not enough, and a simulator is none of ours."""
    assert found_name(container) is None


@pytest.mark.parametrize(
    "container",
    [
        ContainerFacts(
            "server",
            image="acme/sglang:v0.5",
            command=("python3", "-m", "sglang.launch_server"),
            ports=(8000,),
            probe_paths=("/health",),
        ),
        ContainerFacts("main", image="acme/tgi:3", args=("--model-id", "m"), ports=(8080,), probe_paths=("/health",)),
        ContainerFacts("server", image="ollama/ollama:1", args=("serve",), ports=(8000,), probe_paths=("/health",)),
        ContainerFacts("engine", image="acme/vllm-router:1", ports=(8000,), probe_paths=("/health",), args=("-x",)),
    ],
)
def test_the_servers_of_other_engines_are_left_alone(container: ContainerFacts) -> None:
    """Name, port, probe and the labels of a serving stack are what each of them has: none of these tells the engine."""
    stack = {"kserve.io/component": "workload", "leaderworkerset.sigs.k8s.io/name": "x", "model.aibrix.ai/name": "m"}
    assert detect((container,), stack).found is None


@pytest.mark.parametrize("args", [("vllm", "serve", "m"), ("serve", "m"), ("bash", "-c", "vllm serve m")])
def test_a_command_that_the_image_starts_by_itself_is_told(args: tuple[str, ...]) -> None:
    """Its entrypoint is `vllm serve`, and takes the command for the model; as a command it is right."""
    image = "vllm/vllm-openai:v0.27.1"
    found = detect([ContainerFacts("a", image=image, args=args)], {}).found
    right = detect([ContainerFacts("a", image=image, command=("vllm", "serve"), args=("m",))], {}).found
    other = detect([ContainerFacts("vllm", image="acme/my-vllm:1", args=args)], {}).found
    assert found is not None
    assert right is not None
    assert other is not None
    assert "the image starts vLLM by itself" in str(found.arguments.problems[0])
    assert (right.arguments.problems, other.arguments.problems) == ((), ())


def test_the_annotation_wins_over_every_sign() -> None:
    """A user may name a container that has no sign at all."""
    assert found_name(OFFICIAL, SIDECAR, named="proxy") == "proxy"


def test_an_annotation_that_names_nothing_is_said() -> None:
    """The answer lists the containers that exist."""
    detection = detect((OFFICIAL, SIDECAR), {}, named="vlm")
    assert detection.found is None
    assert detection.reason.endswith("the pod's containers are engine, proxy")


def test_two_alike_are_not_guessed_between() -> None:
    """The user is asked to name one."""
    twin = ContainerFacts("decode", image="vllm/vllm-openai:v0.27.1", args=("m",))
    detection = detect((OFFICIAL, twin), {})
    assert detection.found is None
    assert "engine, decode look alike" in detection.reason


def test_between_two_alike_the_one_that_asks_for_groups_serves() -> None:
    """A second server may run on the CPU; when both ask, neither is guessed."""
    twin = ContainerFacts("decode", image="vllm/vllm-openai:v0.27.1", args=("m",))
    found = detect((OFFICIAL, twin), {}, asking={"decode"}).found
    assert found is not None
    assert found.container.name == "decode"
    assert detect((OFFICIAL, twin), {}, asking={"decode", "engine"}).found is None


def test_a_pod_without_vllm_has_no_reason_to_give() -> None:
    """Nothing was found and nothing is wrong."""
    assert detect((SIDECAR,), {}).reason == ""


def test_labels_of_a_serving_stack_help() -> None:
    """They decide where image and flags say only a little."""
    plain = ContainerFacts("main", image="acme/custom-vllm-build:1")
    assert found_name(plain) is None
    found = detect((plain,), {"llm-d.ai/inference-serving": "true"}).found
    assert found is not None
    assert "labels of a serving stack" in found.signs


def test_a_label_says_the_release_where_the_image_does_not() -> None:
    """Of the image's own labels, repeated on the pod; a tag wins over it."""
    label = {"org.opencontainers.image.version": "v0.26.0"}
    for image, version in (("vllm/vllm-openai:latest", "0.26.0"), ("vllm/vllm-openai:v0.27.1", "0.27.1")):
        found = detect([ContainerFacts("vllm", image=image, args=("m",))], label).found
        assert found is not None
        assert found.version == version


@pytest.mark.parametrize(
    ("image", "version"),
    [
        ("vllm/vllm-openai:v0.27.1", "0.27.1"),
        ("registry.example:5000/mirror/vllm-openai:0.25.0", "0.25.0"),
        ("vllm/vllm-openai:v0.27.1-cu130@sha256:abc", "0.27.1"),
        ("vllm/vllm-openai:v0.28.0rc1", "0.28.0"),
        ("docker.io/lmcache/vllm-openai:v0.3.9", None),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai:nightly-0.1.2", None),
        ("vllm/vllm-openai@sha256:abc", None),
        ("ghcr.io/llm-d/llm-d-cuda:v0.2.0", None),
        ("acme/my-vllm:1.2.3", None),
        ("registry.example:5000/vllm", None),
        ("", None),
    ],
)
def test_the_version_comes_from_tags_that_are_vllm_s_own(image: str, version: str | None) -> None:
    """A build of someone else has that one's version numbers; `latest` and digests say none."""
    assert image_version(image) == version
