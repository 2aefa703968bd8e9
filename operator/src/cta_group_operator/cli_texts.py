"""What ``cta-group-operator --help`` says of each command."""

from typing import Final

ABOUT: Final = "The control plane side of CTA groups: quota, placement, alignment of vLLM, explanations."
ABOUT_RUN: Final = """\
Keep ResourceQuotas as CTAQuotas say, choose nodes for pods that ask for groups, and explain in CTAWorkloads why a
workload is not running. The admission endpoint answers from every replica; of several, one leads and does the rest.

Each option can be given by the environment variable in brackets; the command line wins.
Against a cluster from outside, without the admission endpoint:

  cta-group-operator run --kubeconfig ~/.kube/config --webhook-port 0"""

ABOUT_GATES: Final = """\
Take the scheduling gate ctagroup.dev/placement off every pod that waits for a GPU; the pods are then scheduled as they
are. For the end of an installation: without the operator nothing else takes these gates off. The chart's uninstall runs
it by itself.

  kubectl -n cta-group exec deploy/cta-group-operator -- cta-group-operator release-gates    while it is installed
  cta-group-operator release-gates --kubeconfig ~/.kube/config                               afterwards

While the operator runs with placement on, new pods are gated anew. Exit status 1: some pods are gated still."""

ABOUT_CHECK: Final = """\
Tell whether a release does its work: the API server answers, a pod that asks for groups comes before the webhook (a dry
run: nothing is stored), a replica of the operator leads, nodes have confirmed what they offer, and their kubelets offer
the same. What is not so yet may become so until the time is over. The chart's `helm test` runs it by itself.

  helm test cta-group --namespace cta-group
  cta-group-operator check-release --kubeconfig ~/.kube/config       with your own rights

Exit status 1: something is wrong; each finding says how to mend it. `kubectl cta doctor` looks closer."""
