"""What is refused and warned of, beside the memory of a server."""

import pytest

from cta_group_core.profiles import profile_named
from cta_group_core.vllm.detect import ContainerFacts, detect
from cta_group_core.vllm.findings import Probes, misleading_variables
from cta_group_core.vllm.gpu import GpuKind
from cta_group_core.vllm.judge import Case, Judgement, judge
from cta_group_core.vllm.surroundings import Surroundings

CONFIG = {
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
}
"""Of an 8B model: 15 GiB of weights, 128 KiB of KV cache a token."""


_OF_THE_CASE = ("labels", "probes", "services", "service_links")


def kind_of(profile: str, *, limits_memory: bool = True) -> GpuKind:
    """Return a kind of GPU with the default reserve."""
    known = profile_named(profile)
    return GpuKind(known.product, known.memory_total_mib, 1024, known.units, limits_memory)


def judged(*words: str, groups: int = 32, gpu: str = "h100-sxm", **surroundings: object) -> Judgement:
    """Judge `vllm serve WORDS` on one kind of GPU."""
    options = {
        name: surroundings.pop(name)
        for name in ("labels", "probes", "services", "service_links")
        if name in surroundings
    }
    version = str(surroundings.pop("version", "v0.25.0"))
    container = ContainerFacts(
        "vllm",
        f"vllm/vllm-openai:{version}",
        args=words,
        surroundings=Surroundings(**surroundings),  # type: ignore[arg-type]
    )
    found = detect([container], {}).found
    assert found is not None
    return judge(Case(found, groups, [kind_of(gpu)], **options))  # type: ignore[arg-type]


def warned(judgement: Judgement, text: str) -> bool:
    """Tell whether a warning says this."""
    return any(text in warning for warning in judgement.warnings)


def test_a_server_that_fits_has_nothing_said_of_it() -> None:
    """No warning where there is nothing to do by hand."""
    judgement = judged("Qwen/Qwen3-4B", probes=Probes(600, 30))
    assert (judgement.refused, judgement.warnings) == ((), ())


def test_weights_that_the_name_says_do_not_fit_are_warned_of_with_the_slice_that_holds_them() -> None:
    """8B in a quarter of 80 GB: 16 GiB of weights, and the smallest slice is said; it is a guess from a name."""
    judgement = judged("meta-llama/Llama-3.1-8B")
    (warning,) = [one for one in judgement.warnings if "weights" in one]
    assert "about 15258 MiB (its name says 8B parameters, perhaps 5 % too few), and vLLM has 15436 MiB" in warning
    assert judgement.refused == ()
    groups = int(warning.rpartition(": ")[2].split()[0])
    assert not any("the weights of" in one for one in judged("meta-llama/Llama-3.1-8B", groups=groups).warnings)
    assert any("the weights of" in one for one in judged("meta-llama/Llama-3.1-8B", groups=groups - 8).warnings)


def test_weights_that_no_slice_holds_need_whole_gpus() -> None:
    """70B on 80 GB."""
    assert warned(judged("meta-llama/Llama-3.1-70B", groups=120), "whole GPU, or several with --tensor-parallel-size")


def test_a_slice_that_holds_them_with_the_sequences_that_are_set_is_not_warned_of() -> None:
    """0.6B in 8 groups: with vLLM's own 1024 sequences they would not fit, and a shell's words are not changed."""
    assert not any("the weights of" in one for one in judged("Qwen/Qwen3-0.6B", groups=8).warnings)
    given = judged("Qwen/Qwen3-0.6B", "--max-num-seqs=1024", groups=8)
    (warning,) = [one for one in given.warnings if "the weights of" in one]
    assert warning.endswith("16 groups would hold them")


def test_a_share_of_the_user_s_that_the_weights_do_not_fit_is_told_with_the_most_that_starts() -> None:
    """It fits the slice, so it stays, and vLLM has no room for its cache."""
    (warning,) = [one for one in judged("Qwen/Qwen3-4B", "--gpu-memory-utilization=0.05").warnings if "weights" in one]
    assert "the share given leaves vLLM 2872 MiB for weights and KV cache: 0.207 is the most in 32 groups" in warning
    enough = judged("Qwen/Qwen3-4B", "--gpu-memory-utilization=0.15")
    assert not any("weights" in one for one in enough.warnings)


def test_weights_known_from_a_config_are_refused() -> None:
    """Then there is no doubt."""
    judgement = judged("/models/x", groups=24, configs={"/models/x/config.json": CONFIG})
    assert ["its config.json gives 8.03B parameters" in one for one in judgement.refused] == [True]


@pytest.mark.parametrize(
    ("words", "version", "said"),
    [
        ((), "v0.9.2", True),
        ((), "latest", True),
        ((), "v0.25.0", False),
        (("--gpu-memory-utilization=0.25",), "v0.25.0", True),
        (("--max-model-len=auto",), "v0.25.0", False),
        (("--max-model-len=4096",), "v0.9.2", False),
        (("--max-model-len=100k",), "v0.25.0", True),
    ],
)
def test_a_context_that_does_not_fit_is_warned_of(words: tuple[str, ...], version: str, said: bool) -> None:  # noqa: FBT001
    """With the longest that does, where the model's shape is known and vLLM is not told to find it itself."""
    judgement = judged("/models/x", *words, groups=40, version=version, configs={"/models/x/config.json": CONFIG})
    assert warned(judgement, "--max-model-len=") is said


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("CUDA_MPS_PIPE_DIRECTORY", True),
        ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", True),
        ("NVIDIA_VISIBLE_DEVICES", True),
        ("NVIDIA_DRIVER_CAPABILITIES", False),
    ],
)
def test_variables_of_the_slice_are_refused(name: str, said: bool) -> None:  # noqa: FBT001
    """A pod's own value would replace the plugin's."""
    assert any(name in one for one in judged("m", variables={name: "1"}).refused) is said


@pytest.mark.parametrize(
    ("probes", "said"),
    [
        (Probes(None, None), False),
        (Probes(None, 90), True),
        (Probes(None, 300), False),
        (Probes(150, 30), True),
        (Probes(600, 30), False),
    ],
)
def test_probes_that_end_a_server_that_loads_are_warned_of(probes: Probes, said: bool) -> None:  # noqa: FBT001
    """A start-up probe counts before a liveness probe."""
    assert warned(judged("m", probes=probes), "startup probe") is said


@pytest.mark.parametrize(
    ("services", "links", "said"), [(["vllm"], True, True), (["vllm"], False, False), (["x"], True, False)]
)
def test_a_service_called_vllm_is_warned_of(services: list[str], links: bool, said: bool) -> None:  # noqa: FBT001
    """Kubernetes puts VLLM_PORT into every pod beside it, unless service links are off."""
    assert warned(judged("m", services=services, service_links=links), "VLLM_PORT") is said


def test_the_smallest_slices_are_told_of_eager_mode() -> None:
    """Below 16 groups, and not when it is on."""
    assert warned(judged("m", groups=8, gpu="h200"), "--enforce-eager")
    assert not warned(judged("m", "--enforce-eager", groups=8, gpu="h200"), "--enforce-eager")
    assert not warned(judged("m", groups=16, gpu="h200"), "--enforce-eager")


def test_whole_gpus_have_nothing_to_fit() -> None:
    """No slice, no limit, no alignment."""
    judgement = judged("meta-llama/Llama-3.1-70B", "-tp=2", groups=256)
    assert (judgement.alignment, judgement.refused) == (None, ())


@pytest.mark.parametrize(
    ("words", "groups", "labels", "refused"),
    [
        (("-tp=2",), 32, {}, True),
        (("-tp=2",), 256, {}, False),
        ((), 256, {}, True),
        (("-tp=$(TP)",), 256, {}, False),
        (("$(MORE)", "m"), 256, {}, False),
        (("-tp=8", "-pp=2"), 1024, {}, True),
        (("-tp=8", "-pp=2"), 1024, {"leaderworkerset.sigs.k8s.io/name": "x"}, False),
        (("-tp=8", "-pp=2", "--nnodes=2"), 1024, {}, False),
        (("-tp=8", "-pp=2", "--distributed-executor-backend=ray"), 1024, {}, False),
        (("-tp=2", "--distributed-executor-backend=ray"), 64, {}, True),
    ],
)
def test_ranks_and_whole_gpus_have_to_be_as_many(
    words: tuple[str, ...],
    groups: int,
    labels: dict[str, str],
    refused: bool,  # noqa: FBT001
) -> None:
    """More than GPUs, or fewer, unless several pods share them or something cannot be read."""
    assert bool(judged("m", *words, groups=groups, labels=labels).refused) is refused


@pytest.mark.parametrize(
    ("command", "args", "files", "said"),
    [
        (("vllm", "serve", "m"), (), {}, True),
        ((), ("m",), {}, True),
        (("bash", "-c", "vllm serve m"), (), {}, True),
        (("bash", "-c", "vllm serve $VLLM_MINE"), (), {}, False),
        (("bash", "/own/start.sh"), (), {}, False),
        (("bash", "-c", "exec /own/start.sh m"), (), {}, False),
        (("bash", "/own/start.sh"), (), {"/own/start.sh": "vllm serve m"}, True),
        (("bash", "/own/start.sh"), (), {"/own/start.sh": "vllm serve $VLLM_MINE"}, False),
        (("python3", "serve.py"), (), {}, False),
        ((), (), {}, False),
    ],
)
def test_a_variable_that_no_vllm_has_is_told_where_nobody_else_can_read_it(
    command: tuple[str, ...],
    args: tuple[str, ...],
    files: dict[str, str],
    said: bool,  # noqa: FBT001 - a column of the table
) -> None:
    """A script or an image of one's own may have variables of any name; a known misleading one is told everywhere."""
    around = Surroundings({"VLLM_MINE": "1", "CUDA_VISIBLE_DEVICES": "0"}, files=files)
    told = misleading_variables(ContainerFacts("x", "acme/x:1", command, args, surroundings=around))
    assert [one for one in told if "VLLM_MINE" in one] == (
        ["container x sets VLLM_MINE: no release of vLLM has this variable"] if said else []
    )
    assert any("CUDA_VISIBLE_DEVICES" in one for one in told)
