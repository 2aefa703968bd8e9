"""What the operator does about each kind: read the stores, decide by ``core``, write what differs, once."""
