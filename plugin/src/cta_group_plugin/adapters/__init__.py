"""Implementations of the ports: the driver, kubelet, the API server, the MPS supervisor."""
