"""kubelet's two gRPC interfaces on a node, as generated code. The ``.proto`` files beside this one are the source.

Both were written from the public field numbers and hold what this project uses; kubelet's other fields are skipped by
protobuf. ``scripts/generate`` makes the Python files anew, and a test compares them.
"""
