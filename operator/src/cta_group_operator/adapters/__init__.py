"""The edge: the Kubernetes API over HTTP. Everything here turns foreign JSON into the values of ``ports``."""
