"""The flags of ``vllm serve``: how many words each takes, and which of them the project acts on.

The table is the union of what six releases accept (0.6.6, 0.9.2, 0.11.2, 0.16.0, 0.25.0, 0.33.0), read from their
parsers. It is needed whole: without it no one can tell a flag's value from the model's name, nor whether an
abbreviation is unique.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum


class Arity(Enum):
    """How many words follow a flag."""

    SWITCH = "none"
    VALUE = "one"
    MANY = "one or more"
    OPTIONAL = "none or one"


class Flag(StrEnum):
    """A flag that the project reads, by its usual spelling."""

    MODEL = "--model"
    SERVED_MODEL_NAME = "--served-model-name"
    PORT = "--port"
    CONFIG = "--config"
    GPU_MEMORY_UTILIZATION = "--gpu-memory-utilization"
    KV_CACHE_MEMORY_BYTES = "--kv-cache-memory-bytes"
    MAX_MODEL_LEN = "--max-model-len"
    MAX_NUM_SEQS = "--max-num-seqs"
    MAX_NUM_BATCHED_TOKENS = "--max-num-batched-tokens"
    ENFORCE_EAGER = "--enforce-eager"
    TENSOR_PARALLEL_SIZE = "--tensor-parallel-size"
    PIPELINE_PARALLEL_SIZE = "--pipeline-parallel-size"
    DATA_PARALLEL_SIZE = "--data-parallel-size"
    DATA_PARALLEL_SIZE_LOCAL = "--data-parallel-size-local"
    DATA_PARALLEL_RANK = "--data-parallel-rank"
    PREFILL_CONTEXT_PARALLEL_SIZE = "--prefill-context-parallel-size"


ALIASES = {
    "--device-memory-utilization": Flag.GPU_MEMORY_UTILIZATION,  # since 0.33
    "-tp": Flag.TENSOR_PARALLEL_SIZE,
    "-pp": Flag.PIPELINE_PARALLEL_SIZE,
    "-dp": Flag.DATA_PARALLEL_SIZE,
    "-dpl": Flag.DATA_PARALLEL_SIZE_LOCAL,
    "-dpn": Flag.DATA_PARALLEL_RANK,
    "-pcp": Flag.PREFILL_CONTEXT_PARALLEL_SIZE,
}
"""Other spellings of the flags above."""

_SWITCHES = """
aggregate-engine-logging allow-credentials allow-deprecated-quantization async-scheduling calculate-kv-scales
cohere-is-reasoning-model cudagraph-metrics data-parallel-external-lb data-parallel-hybrid-lb
data-parallel-multi-port-external-lb dcp-q-replicate disable-async-output-proc disable-cascade-attn
disable-chunked-mm-input disable-custom-all-reduce disable-fastapi-docs disable-frontend-multiprocessing
disable-hybrid-kv-cache-manager disable-log-requests disable-log-stats disable-mm-preprocessor-cache
disable-nccl-for-dp-synchronization disable-sliding-window disable-uvicorn-access-log enable-auto-tool-choice
enable-batch-sharded-sampling enable-chunked-prefill enable-cumem-allocator enable-dbo enable-elastic-ep
enable-ep-weight-filter enable-eplb enable-expert-parallel enable-fault-tolerance enable-flash-late-interaction
enable-flashinfer-autotune enable-force-include-usage enable-hc-sp enable-layerwise-nvtx-tracing enable-log-deltas
enable-log-outputs enable-log-requests enable-logging-iteration-details enable-lora
enable-mamba-cache-stochastic-rounding enable-mamba-shared-prefix-checkpoint enable-mfu-metrics
enable-mixed-moe-lora-format enable-mm-embeds enable-moe-shared-loras enable-multimodal-encoder-data-parallel
enable-nccl-comm-suspend enable-offline-docs enable-per-request-metrics enable-prefix-caching enable-prompt-adapter
enable-prompt-embeds enable-prompt-tokens-details enable-reasoning enable-request-id-headers
enable-return-routed-experts enable-scale-out enable-server-load-tracking enable-shm-tensor-arena enable-sleep-mode
enable-ssl-refresh enable-tokenizer-info-endpoint enable-tower-connector-lora enable-trace-replay enforce-eager
eplb-log-balancedness exclude-tools-when-tool-choice-none expand-tools-even-if-tool-choice-none
fail-on-environ-validation fully-sharded-loras grpc headless interleave-mm-strings jit-monitor-verbose
kv-cache-metrics kv-sharing-fast-prefill language-model-only log-error-stack long-prefill-token-threshold-adaptive
mm-device-do-normalize mm-encoder-only monokernel multi-step-stream-outputs numa-bind ray-workers-use-nsight
return-sampling-mask return-tokens-as-token-ids scheduler-reserve-full-isl skip-mm-profiling skip-tokenizer-init
sleep-mode-offload-cudagraph specialize-active-lora speculative-disable-mqa-scorer swa-bounded-replay tokens-only
trust-remote-code trust-request-chat-template trust-request-mm-kwargs use-fp64-gumbel use-replayssm use-tqdm-on-load
use-v2-block-manager worker-use-ray
"""
_SHORT_SWITCHES = "-dpe -dph -dpm -ep"

_MANY = """
allowed-media-domains api-key collect-detailed-traces cpu-offload-params cuda-graph-sizes cudagraph-capture-sizes
ignore-patterns kv-cache-dtype-skip-layers logits-processors lora-modules lora-target-modules numa-bind-cpus
numa-bind-nodes offload-params prompt-adapters served-model-name sleep-preserve-parameter-names
"""
_OPTIONAL = "disable-logprobs-during-spec-decoding hf-token"

_VALUES = """
additional-config all2all-backend allowed-headers allowed-local-media-path allowed-methods allowed-origins
anthropic-disabled-thinking-effort api-server-count attention-backend attention-config aux-output-config block-size
chat-template chat-template-content-format code-revision cohere-format compilation-config config config-format convert
cp-kv-cache-interleave-size cpu-distributed-timeout-seconds cpu-offload-gb custom-histogram-buckets
data-parallel-address data-parallel-backend data-parallel-rank data-parallel-rpc-port data-parallel-size
data-parallel-size-local data-parallel-start-rank data-parallel-supervisor-port dbo-decode-token-threshold
dbo-prefill-token-threshold dcp-comm-backend dcp-kv-cache-interleave-size decode-context-parallel-size
default-chat-template-kwargs default-mm-loras device device-ids device-memory-utilization diffusion-config
disable-access-log-for-endpoints distributed-executor-backend distributed-timeout-seconds download-dir
dp-supervisor-probe-failure-threshold dp-supervisor-probe-interval-s dp-supervisor-probe-timeout-s dp-sync-interval
dtype ec-manager-config ec-transfer-config elastic-ep-max-dp-size enable-lora-bias engram-config eplb-config
eplb-step-interval eplb-window-size expert-placement-strategy fault-tolerance-config fingerprint-mode
fingerprint-value gdn-prefill-backend generation-config gpu-memory-utilization grpc-port guided-decoding-backend
guided-decoding-disable-additional-properties guided-decoding-disable-any-whitespace guided-decoding-disable-fallback
h11-max-header-count h11-max-incomplete-event-size hf-config-path hf-overrides host io-processor-plugin ir-op-priority
jit-monitor-mode kda-decode-backend kda-prefill-backend kernel-config kv-cache-dtype kv-cache-memory-bytes
kv-cache-metrics-sample kv-events-config kv-offloading-backend kv-offloading-size kv-transfer-config
limit-mm-per-prompt linear-backend load-format log-config-file log-level logging-config logits-processor-pattern
logprobs-mode long-lora-scaling-factors long-prefill-token-threshold lora-dtype lora-extra-vocab-size mamba-backend
mamba-block-size mamba-cache-dtype mamba-cache-mode mamba-cache-philox-rounds mamba-ssm-cache-dtype
mamba-ssu-algorithm master-addr master-port max-cpu-loras max-cudagraph-capture-size max-log-len max-logprobs
max-long-partial-prefills max-lora-cls-labels max-lora-rank max-loras max-model-len max-num-active-seqs
max-num-batched-tokens max-num-partial-prefills max-num-queued-reqs max-num-queued-tokens max-num-scheduled-tokens
max-num-seqs max-parallel-loading-workers max-prompt-adapter-token max-prompt-adapters max-seq-len-to-capture
media-io-kwargs middleware mm-encoder-attn-backend mm-encoder-attn-dtype mm-encoder-fp8-scale-path
mm-encoder-fp8-scale-save-margin mm-encoder-fp8-scale-save-path mm-encoder-tp-mode mm-hasher-algorithm
mm-ipc-gpu-memory-gb mm-processor-cache-gb mm-processor-cache-type mm-processor-device mm-processor-kwargs
mm-shm-cache-max-object-size-mb mm-tensor-ipc model model-class-overrides model-impl model-loader-extra-config
moe-backend ngram-prompt-lookup-max ngram-prompt-lookup-min nnodes node-rank num-gpu-blocks-override
num-lookahead-slots num-redundant-experts num-scheduler-steps num-speculative-tokens offload-backend
offload-group-size offload-num-in-group offload-prefetch-step optimization-level otlp-traces-endpoint
override-attention-dtype override-generation-config override-neuron-config override-pooler-config
per-request-spec-decode-metrics performance-mode pipeline-parallel-size pooler-config port preemption-mode
prefill-context-parallel-size prefill-schedule-interval prefix-cache-retention-interval prefix-caching-hash-algo
prefix-match-unit profiler-config pt-load-map-location qlora-adapter-name-or-path quantization quantization-config
quantization-param-path reasoning-config reasoning-effort-map reasoning-parser reasoning-parser-plugin
renderer-num-workers replayssm-buffer-len response-role revision root-path rope-scaling rope-theta runner
safetensors-load-strategy safetensors-prefetch-block-size safetensors-prefetch-num-threads scheduler-cls
scheduler-delay-factor scheduling-policy seed show-hidden-metrics-for-version shutdown-timeout sleep-mode-backend
sparse-indexer-topk-backend spec-decoding-acceptance-method spec-method spec-model spec-tokens speculative-config
speculative-disable-by-batch-size speculative-draft-tensor-parallel-size speculative-max-model-len speculative-model
speculative-model-quantization sse-keep-alive-interval ssl-ca-certs ssl-cert-reqs ssl-certfile ssl-ciphers ssl-keyfile
stream-interval structured-outputs-config swap-space task tensor-parallel-size tokenizer tokenizer-mode
tokenizer-pool-extra-config tokenizer-pool-size tokenizer-pool-type tokenizer-revision tool-call-parser
tool-parser-plugin tool-server tool-strict-level typical-acceptance-sampler-posterior-alpha
typical-acceptance-sampler-posterior-threshold ubatch-size uds uvicorn-log-level video-pruning-method
video-pruning-rate watchdog-config watermark watermark-config weight-transfer-config worker-cls worker-extension-cls
"""
_SHORT_VALUES = "-O -ac -asc -cc -dc -dcp -dp -dpa -dpb -dpl -dpn -dpp -dpr -n -pcp -pp -q -r -sc -tp"
LONG_NAMES = {
    "-ac": "--attention-config",
    "-cc": "--compilation-config",
    "-dc": "--diffusion-config",
    "-dcp": "--decode-context-parallel-size",
    "-dpa": "--data-parallel-address",
    "-dpb": "--data-parallel-backend",
    "-dpe": "--data-parallel-external-lb",
    "-dph": "--data-parallel-hybrid-lb",
    "-dpm": "--data-parallel-multi-port-external-lb",
    "-dpp": "--data-parallel-rpc-port",
    "-dpr": "--data-parallel-start-rank",
    "-ep": "--enable-expert-parallel",
    "-n": "--nnodes",
    "-q": "--quantization",
    "-r": "--node-rank",
    "-sc": "--speculative-config",
}
"""What other short flags are short for; `-O` is not the same in every release."""


def _long(names: str) -> list[str]:
    return [f"--{name}" for name in names.split()]


def _inverses(switch: str) -> list[str]:
    """Spellings that turn a switch off. Not every release has each; none of them takes a value."""
    found = [switch.replace("--", "--no-", 1)]
    for prefix, inverse in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
        if switch.startswith(prefix):
            found.append(inverse + switch.removeprefix(prefix))
    return found


def _arities() -> dict[str, Arity]:
    arities: dict[str, Arity] = {"--help": Arity.SWITCH, "-h": Arity.SWITCH}
    for switch in _long(_SWITCHES):
        arities |= dict.fromkeys(_inverses(switch), Arity.SWITCH)
    arities |= dict.fromkeys([*_long(_SWITCHES), *_SHORT_SWITCHES.split()], Arity.SWITCH)
    arities |= dict.fromkeys([*_long(_VALUES), *_SHORT_VALUES.split()], Arity.VALUE)
    arities |= dict.fromkeys(_long(_MANY), Arity.MANY)
    arities |= dict.fromkeys(_long(_OPTIONAL), Arity.OPTIONAL)
    return arities


ARITIES: dict[str, Arity] = _arities()
"""Every spelling that some release accepts, with dashes, and what follows it."""


@dataclass(frozen=True, slots=True)
class Spelling:
    """What the option part of a word (before ``=``) can mean."""

    names: tuple[str, ...]
    """Full spellings from the table: none for an unknown flag, one for a certain one, several for an ambiguous one."""

    @property
    def name(self) -> str | None:
        """The flag's full spelling when it is certain."""
        return self.names[0] if len(self.names) == 1 else None


def resolve(option: str) -> Spelling:
    """Return what ``option`` (``--gpu_memory_util``, ``-tp``) means: itself, or what it abbreviates.

    vLLM's parser takes underscores for dashes and any prefix that is unique. Unique here means in every release of the
    table, so that a prefix which only some releases understand is never taken for certain.
    """
    written = option.replace("_", "-") if option.startswith("--") else option
    if written in ARITIES:
        return Spelling((written,))
    return Spelling(tuple(sorted(name for name in ARITIES if name.startswith(written))))
