"""What is made in the private namespaces before a component runs; a control plane alone needs nothing."""

from pathlib import Path


def prepare_node(folder: Path) -> None:
    """Prepare nothing: a cluster with a node is not there yet, and its plan would lie in ``folder``."""
