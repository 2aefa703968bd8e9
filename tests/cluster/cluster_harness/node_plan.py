"""What a node is called, where it is in the private network, and which folders it has to itself.

Node number i has the address 10.99.i.1/30 and gives its pods 10.88.i.0/24. The other end of its link is 10.99.i.2: that
of a node which joined is in the first node, that of the first node in nobody's hands.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from cluster_harness.state_folder import NODE_PLAN

POD_RANGE = "10.88.0.0/16"
PRIVATE_PARENTS = ("/etc", "/opt", "/var")
CONTAINERD_ROOT = "/var/lib/containerd"


@dataclass(frozen=True, slots=True)
class NodePlan:
    """Says how the namespaces of a node are prepared; written to the state folder, read by the supervisor.

    ``kubelet_root`` is the kubelet's state folder as the node sees it, by default where every distribution has it.
    It must lie below one of PRIVATE_PARENTS, which are the node's own, so that nothing appears on the machine.
    ``joins``: whether it joins a cluster that runs, which then makes the link to it.
    """

    name: str = "node-1"
    number: int = 1
    kubelet_root: str = "/var/lib/kubelet"
    joins: bool = False

    def __post_init__(self) -> None:
        if self.number not in range(1, 255):
            raise ValueError(
                f"number {self.number} of node {self.name!r} must be from 1 to 254: it is part of addresses"
            )
        if not self.kubelet_root.startswith(tuple(f"{parent}/" for parent in PRIVATE_PARENTS)):
            raise ValueError(f"kubelet_root {self.kubelet_root!r} must lie below one of {', '.join(PRIVATE_PARENTS)}")

    @property
    def address(self) -> str:
        """The node's IP address."""
        return f"10.99.{self.number}.1"

    @property
    def gateway(self) -> str:
        """The other end of the node's link."""
        return f"10.99.{self.number}.2"

    @property
    def pod_range(self) -> str:
        """The addresses of the node's pods."""
        return f"10.88.{self.number}.0/24"

    @property
    def kept_folders(self) -> tuple[str, ...]:
        """Folders that hold much, or that containers are made from: kept on disk, in the state folder."""
        return (self.kubelet_root, CONTAINERD_ROOT, "/var/log/pods")

    def place_of(self, kept: str, folder: Path) -> Path:
        """Return where one of the kept folders really lies, in the state folder ``folder``."""
        return folder / "node" / kept.strip("/").replace("/", "-")

    def write(self, folder: Path) -> None:
        """Leave the plan in the state folder for the supervisor."""
        (folder / NODE_PLAN).write_text(json.dumps(asdict(self)))

    @classmethod
    def read(cls, folder: Path) -> Self | None:
        """Return the plan of the state folder; None where only a control plane runs."""
        path = folder / NODE_PLAN
        return cls(**json.loads(path.read_text())) if path.exists() else None
