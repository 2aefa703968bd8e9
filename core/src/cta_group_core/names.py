"""Every name that more than one part must spell the same way, with who writes it and who reads it."""

from typing import Final

API_GROUP: Final = "ctagroup.dev"
API_VERSION: Final = "v1alpha1"
API_GROUP_VERSION: Final = f"{API_GROUP}/{API_VERSION}"

DEFAULT_RESOURCE_NAME: Final = "nvidia.com/cta-group"
"""Extended resource that pods ask for; a chart value. The prefix is NVIDIA's, this project is not affiliated."""
WHOLE_GPU_RESOURCE: Final = "nvidia.com/gpu"
"""What a pod asks for at NVIDIA's own plugin: whole GPUs. Our annotation replaces it."""

# --- objects and field managers
QUOTA_OBJECT_NAME: Final = "cta-group"
"""Name of the ResourceQuota that the operator keeps in each namespace of a CTAQuota."""
FIELD_MANAGER_PLUGIN: Final = "cta-group-plugin"
FIELD_MANAGER_OPERATOR: Final = "cta-group-operator"

# --- labels
LABEL_REQUESTS: Final = f"{API_GROUP}/requests"
"""Put on a pod at its admission when it asks for the resource (value "true"); the operator's pod watch selects it."""
LABEL_QUOTA: Final = f"{API_GROUP}/quota"
"""On a ResourceQuota: the CTAQuota that owns it. Written and read by the operator."""
LABEL_SIMULATED: Final = f"{API_GROUP}/simulated"
"""On a node ("true") whose GPUs are simulated. Written by the operator from CTANode."""
LABEL_GPU_PRODUCT: Final = f"{API_GROUP}/gpu-product"
LABEL_GROUPS_PER_GPU: Final = f"{API_GROUP}/groups-per-gpu"

LABEL_PART_OF: Final = "app.kubernetes.io/part-of"
"""On every object of the chart: :data:`PART_OF`. Read by ``kubectl cta doctor``."""
PART_OF: Final = "cta-group"
LABEL_COMPONENT: Final = "app.kubernetes.io/component"
"""On every object of the chart: plugin, mps, operator, policies, ..."""

DEFAULT_SCHEDULER: Final = "default-scheduler"
"""Kubernetes' own: of a pod that names none."""

# --- the scheduling gate of placement
GATE_PLACEMENT: Final = f"{API_GROUP}/placement"
"""Put on a pod at its admission, removed by the operator once a GPU has room."""

# --- annotations on a pod template, written by people
ANNOTATION_GROUPS: Final = f"{API_GROUP}/groups"
ANNOTATION_CONTAINER: Final = f"{API_GROUP}/container"
ANNOTATION_ALIGN: Final = f"{API_GROUP}/align"
ANNOTATION_BUDGET: Final = f"{API_GROUP}/budget"
"""On a workload or its pod template, a latency budget such as "ttft=400ms,itl-p99=30ms". Read by the operator and
``kubectl cta align``; the workload's own wins over its template's."""
ANNOTATION_METRICS_PORT: Final = f"{API_GROUP}/metrics-port"
"""Beside the budget: the port of the pods at which vLLM's metrics are, where its arguments do not tell."""
ANNOTATION_ACCESS_PATTERN: Final = f"{API_GROUP}/access-pattern"
"""How a pod uses its GPU (:mod:`cta_group_core.access_pattern`); placement keeps apart who disturbs each other."""
ANNOTATION_SHAPE: Final = f"{API_GROUP}/shape"
"""Thread-block cluster that a pod's kernels need, such as "4,2,1" (:mod:`cta_group_core.cluster_shape`). Read at
admission, by placement, in explanations and by ``kubectl cta align``."""
ANNOTATION_MULTI_CONTAINER: Final = f"{API_GROUP}/multi-container"
"""Value "true": several containers of the pod may ask for groups, and may land on several GPUs."""

ANNOTATION_REPAIRED: Final = f"{API_GROUP}/repaired"
"""On a CTANode, written by people: its GPUs, or those whose UUIDs the text names, were repaired. Another text says it
of another time; a date is a good one. Read by the node's plugin."""

# --- annotations written by the operator
ANNOTATION_ALIGNMENT: Final = f"{API_GROUP}/alignment"
"""On a pod: the changes made to its arguments at admission (JSON: flag, from, to, why)."""
ANNOTATION_ALIGNMENT_ADVICE: Final = f"{API_GROUP}/alignment-advice"
"""On a pod: in words, what its arguments should be and why they were not changed. For people and ``explain``."""
ANNOTATION_RUNTIME_ADVICE: Final = f"{API_GROUP}/runtime-advice"
"""What a pod lacks to get its GPU from the container runtime, in a sentence. Written at admission, read by explain."""
ANNOTATION_PLACEMENT: Final = f"{API_GROUP}/placement-nodes"
"""On a pod: the nodes it was released to, best first (comma separated). For people; never read back as truth."""
ANNOTATION_WITHOUT_WEBHOOK: Final = f"{API_GROUP}/admitted-without-webhook"
"""On a pod ("true") that the operator found without its label: admission did not see it. Read back by the operator."""
ANNOTATION_POKED: Final = f"{API_GROUP}/poked"
"""On a controller of pods: touched when quota moved, so that it tries again at once."""

# --- conditions of a CTANode
CONDITION_REGISTERED: Final = "Registered"
"""True while kubelet knows the plugin; a pod that comes while it is False is failed by kubelet for good."""
CONDITION_GPUS_HEALTHY: Final = "GPUsHealthy"
CONDITION_MPS_READY: Final = "MPSReady"
CONDITION_CLIENTS_LIMITED: Final = "ClientsLimited"
"""False while a process of a tenant runs past the limits of its slice."""
CONDITION_COMPATIBLE: Final = "Compatible"
"""Whether driver and CUDA are what each limit needs."""
CONDITION_HOLDERS_KNOWN: Final = "HoldersKnown"
"""True while kubelet tells who holds what."""
CONDITION_REPORTING: Final = "Reporting"
"""False when the node's plugin has not confirmed the CTANode for long. Written by the operator where it ever was so."""

# --- environment of a container that holds groups, for people
ENV_COUNT: Final = "CTA_GROUP_COUNT"
ENV_CAPACITY: Final = "CTA_GROUP_CAPACITY"
ENV_SM_COUNT: Final = "CTA_GROUP_SM_COUNT"
ENV_MEMORY_MIB: Final = "CTA_GROUP_MEMORY_MIB"
ENV_GPU_UUID: Final = "CTA_GROUP_GPU_UUID"

# --- environment that the enforcement consists of (CUDA MPS, container toolkit)
ENV_VISIBLE_DEVICES: Final = "NVIDIA_VISIBLE_DEVICES"
ENV_MPS_PIPE_DIRECTORY: Final = "CUDA_MPS_PIPE_DIRECTORY"
ENV_MPS_PERCENTAGE: Final = "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
ENV_MPS_MEMORY_LIMIT: Final = "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"

PROTECTED_ENV_PREFIXES: Final = ("CUDA_MPS_",)
"""A pod that holds groups may not set these itself: its value would replace the slice's (admission policy)."""
PROTECTED_ENV: Final = (ENV_VISIBLE_DEVICES,)

CDI_KIND: Final = f"{API_GROUP}/slice"
"""Kind of the CDI devices that the plugin describes on its node: one for each GPU and request size."""

LEFT_OUT: Final = "left out "
"""How ``withheld`` of a GPU begins that the settings leave out. Written by the plugin, read by both doctors."""

METRIC_PREFIX: Final = "cta_group_"
