"""Fakes for tests and benchmarks of the node side, at its outermost edges. Nothing that runs on a node imports them."""

from cta_group_plugin.testing.fake_ports import FakeGpuSource, FakeMpsControl, FakeNodeApi, FakePodResources
from cta_group_plugin.testing.kubelet import AdmissionRefused, FakeKubelet
from cta_group_plugin.testing.pods import Admitted, Ask

__all__ = [
    "AdmissionRefused",
    "Admitted",
    "Ask",
    "FakeGpuSource",
    "FakeKubelet",
    "FakeMpsControl",
    "FakeNodeApi",
    "FakePodResources",
]
