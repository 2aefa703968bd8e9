"""The interface between device plugin and MPS supervisor of one node, as generated code. Its source is the .proto."""
