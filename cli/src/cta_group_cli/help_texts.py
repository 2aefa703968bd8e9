"""What ``--help`` says of each command."""

ABOUT = """\
Slices of GPUs in CTA groups: who holds what, why something does not run, what a request would get.

examples:
  kubectl cta top                                     nodes, GPUs, and who holds how much of them
  kubectl cta explain deployment/llama -n team-a      why it does not run, in one sentence with numbers
  kubectl cta quota -n team-a                         what the team may hold and holds
  kubectl cta plan --gpu h100-sxm --groups 32         SMs and memory of such a slice; needs no cluster
  kubectl cta align -f app.yaml --gpu h100-sxm        what admission would set in its vLLM servers; needs no cluster
  kubectl cta doctor                                  what is wrong with the nodes and the release, and how to mend it

exit status of every command: 0 fine, 1 something needs a person, 2 it could not be answered"""

TOP = """\
Show every node's GPUs (free groups of all, the largest request that fits now, health) and who holds them.

examples:
  kubectl cta top
  kubectl cta top gpu-node-7
  kubectl cta top -o json | jq '.nodes[].gpus[] | select(.free > 0)'

A node whose GPUs are simulated is marked. LARGEST is the largest request that fits on that GPU now: a request is
always on one GPU, or on whole GPUs. Exit status 1: a GPU is unhealthy, or no node tells."""

EXPLAIN = """\
Say in one sentence why a workload does not run, with the numbers behind it.

examples:
  kubectl cta explain deployment/llama
  kubectl cta explain sts/llama -n team-a
  kubectl cta explain pod/llama-0 -o json

The sentence is the operator's (object CTAWorkload). Where it has written none, the answer is read from the objects
themselves: a quota's refusal from ReplicaSets and events, a pod's gate, conditions and containers.
Exit status 0: nothing is in the way; 1: something is; 2: no such object."""

QUOTA = """\
Show each CTAQuota: groups, used, pending, and the part of each namespace.

examples:
  kubectl cta quota
  kubectl cta quota -n team-a        only the quotas of this namespace
  kubectl cta quota -o json

USED counts waiting pods too. PENDING are groups of pods that the quota keeps from being created: kubectl cta explain
DEPLOYMENT tells. Below the table: what is wrong with a quota. A namespace that no CTAQuota names is not limited.
Exit status 1: some are pending, or a quota is not enforced everywhere."""

PLAN = """\
Tell what a request gets on a GPU: SMs, the percentage that the driver is given, memory. Needs no cluster.

examples:
  kubectl cta plan --gpu h100-sxm --groups 32
  kubectl cta plan --gpu a100-80 --groups 54 --reserve-mib 2048 -o json
  kubectl cta plan --list

A request is a fraction of one GPU in whole steps, one whole GPU, or several whole GPUs; a plan is about one.
Exit status 2: no such request, or no such GPU; the sentence says what there is."""

ALIGN = """\
Show for each workload of a manifest which container runs vLLM, its arguments as vLLM reads them, what admission would
set to make it start in its slice, and what it would refuse. Needs no cluster; fit for a repository's checks.

examples:
  kubectl cta align -f deployment.yaml --gpu h100-sxm
  helm template chart | kubectl cta align -f - --gpu h200 -o json | jq '.[] | select(.refused != [])'
  kustomize build overlay | kubectl cta align -f - --gpu l4 -o yaml

Several documents and lists are read, and every kind with a pod template. ConfigMaps of the same input are looked into
for scripts, vLLM's config files and variables. Nothing is changed: shell strings and scripts never are, and the flags
to add to them are said. Exit status 0: fine; 1: something is refused; 2: the input cannot be read."""

DOCTOR = """\
Say what is wrong with the release and its nodes, the worst first, and how to mend each.

examples:
  kubectl cta doctor
  kubectl cta doctor gpu-node-7
  kubectl cta doctor -o json | jq '.findings[] | select(.severity == "error")'

It reads what the nodes publish, Nodes, the release's workloads and pods, webhook, policies, the pods that ask for
groups and kubelet's feature gates, and lets the API server admit a pod for show (nothing is stored). What you may not
read is said and not looked at. On a node itself, also without a cluster, driver, MPS and kubelet are asked by
  kubectl -n cta-group exec ds/cta-group-plugin -- cta-group-plugin doctor
Exit status 1: a finding that is an error or a warning; what is only worth knowing (info) leaves it 0. 2: no such node,
or the cluster does not answer."""
