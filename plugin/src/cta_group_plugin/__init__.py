"""Node side: device plugin, MPS supervisor and the publisher of CTANode."""
