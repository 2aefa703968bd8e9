"""How large a model is, from its config or its name."""

import pytest

from cta_group_core.vllm.arguments import read_arguments
from cta_group_core.vllm.model_size import size_of

CONFIG_06B = {
    "hidden_size": 1024,
    "num_hidden_layers": 28,
    "vocab_size": 151936,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 3072,
    "tie_word_embeddings": True,
    "max_position_embeddings": 40960,
}
CONFIG_4B = {
    **CONFIG_06B,
    "hidden_size": 2560,
    "num_hidden_layers": 36,
    "num_attention_heads": 32,
    "intermediate_size": 9728,
}


@pytest.mark.parametrize(("config", "measured_gib"), [(CONFIG_06B, 1.12), (CONFIG_4B, 7.56)])
def test_weights_from_a_config_are_as_large_as_measured(config: dict[str, object], measured_gib: float) -> None:
    """Qwen3-0.6B and 4B took 1.12 and 7.56 GiB."""
    size = size_of(read_arguments([], ["m"]), config)
    assert size is not None
    assert size.exact
    assert size.weights_mib / 1024 == pytest.approx(measured_gib, rel=0.02)
    assert size.kv_bytes_per_token == config["num_hidden_layers"] * 4096  # type: ignore[operator]


@pytest.mark.parametrize(
    ("words", "weights_mib"),
    [
        (["Qwen/Qwen3-4B"], 7629),
        (["/models/Qwen3-0.6B-Instruct"], 1144),
        (["meta-llama/Llama-3.1-8B-Instruct"], 15258),
        (["mistralai/Mixtral-8x7B-v0.1"], 89721),
        (["Qwen/Qwen3-30B-A3B"], 57220),
        (["google/gemma-3-270m"], 514),
        (["RedHatAI/Llama-3.1-8B-FP8"], 7629),
        (["org/Model-7B-AWQ"], 4005),
        (["org/Model-7B", "--quantization", "gptq"], 4005),
        (["org/Model-7B", "-q=fp8"], 6675),
        (["org/Model-7B", "--dtype=float32"], 26702),
        (["openai/gpt-oss-20b"], 11444),
        (["org/Model-7B-GPTQ-Int8"], 6675),
        (["org/Model-7B-quantized.w8a16"], 6675),
        (["org/Model-7B-W4AFP8"], 4005),
        (["nvidia/Model-7B-NVFP4-KVFP8"], 4005),
        (["org/Model-7B-GGUF"], 4005),
        (["org/Model-7B-GGUF:Q6_K"], 6675),
        (["org/Model-7B-GGUF:IQ4_XS"], 4005),
        (["meta-llama/Llama-4-Scout-17B-16E-Instruct"], None),
        (["google/gemma-3n-E4B-it"], None),
        (["deepseek-ai/DeepSeek-V3"], None),
        (["$(MODEL)"], None),
        ([], None),
        (["org/v2beta-model"], None),
    ],
)
def test_weights_from_a_name(words: list[str], weights_mib: int | None) -> None:
    """The count of parameters, not of the active ones, at the size that quantization leaves."""
    size = size_of(read_arguments(["vllm", "serve"], words))
    assert (None if size is None else size.weights_mib) == weights_mib


def test_a_config_of_another_shape_leaves_it_to_the_name() -> None:
    """Of an encoder, or broken."""
    for config in ({}, {"hidden_size": "x"}, {**CONFIG_06B, "num_attention_heads": 0}):
        size = size_of(read_arguments([], ["org/m-4B"]), config)
        assert size is not None
        assert not size.exact


def test_experts_count_all() -> None:
    """A mixture's weights are all loaded."""
    size = size_of(read_arguments([], ["m"]), {**CONFIG_06B, "num_experts": 8, "moe_intermediate_size": 3072})
    dense = size_of(read_arguments([], ["m"]), CONFIG_06B)
    assert size is not None
    assert dense is not None
    assert size.weights_mib > 4 * dense.weights_mib


def kv_bytes(config: dict[str, object], *words: str) -> int | None:
    """Return the bytes of KV cache of a token."""
    size = size_of(read_arguments([], ["m", *words]), {**CONFIG_06B, **config})
    assert size is not None
    return size.kv_bytes_per_token


@pytest.mark.parametrize(
    ("config", "words", "wanted"),
    [
        ({}, ["--kv-cache-dtype=auto"], 114688),
        ({}, ["--kv-cache-dtype", "fp8_e4m3"], 57344),
        ({}, ["--kv-cache-dtype=nvfp4"], None),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, [], 28 * 576 * 2),
        ({"sliding_window": 4096}, [], None),
        ({"sliding_window": 4096, "use_sliding_window": False}, [], 114688),
        ({"layer_types": ["linear_attention", "full_attention"]}, [], None),
        ({"layer_types": ["full_attention"]}, [], 114688),
    ],
)
def test_the_cache_of_a_token_is_known_where_it_is_one_number(
    config: dict[str, object], words: list[str], wanted: int | None
) -> None:
    """In the type that is asked for; latent attention keeps one entry for all heads; windows keep less than all."""
    assert kv_bytes(config, *words) == wanted


@pytest.mark.parametrize(
    ("quantization", "tenths"),
    [
        ({"quant_method": "awq", "bits": 4}, 6),
        ({"quant_method": "gptq", "bits": 8}, 10),
        ({"quant_method": "compressed-tensors", "config_groups": {"g": {"weights": {"num_bits": 4}}}}, 6),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True, "load_in_8bit": False}, 6),
        ({"quant_method": "fp8"}, 10),
        ({"quant_method": "mxfp4"}, 6),
    ],
)
def test_a_config_says_how_small_its_weights_are(quantization: dict[str, object], tenths: int) -> None:
    """By the bits that it names, else by its method."""
    whole = size_of(read_arguments([], ["m"]), CONFIG_4B)
    small = size_of(read_arguments([], ["m"]), {**CONFIG_4B, "quantization_config": quantization})
    assert whole is not None
    assert small is not None
    assert small.weights_mib == pytest.approx(whole.weights_mib * tenths / 20, abs=1)


def test_experts_in_some_layers_only_are_not_counted_for_certain() -> None:
    """How many layers have them is not looked at."""
    config = {**CONFIG_06B, "num_local_experts": 16, "interleave_moe_layer_step": 2}
    size = size_of(read_arguments([], ["m"]), config)
    assert size is not None
    assert not size.exact
