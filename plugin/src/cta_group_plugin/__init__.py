"""Node side: device plugin, MPS supervisor and the publisher of CTANode."""

__version__ = "0.1.0"
