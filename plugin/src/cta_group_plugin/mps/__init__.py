"""The MPS supervisor: keeps one ``nvidia-cuda-mps-control`` for each shared GPU of the node, and its limits right."""
