"""Control plane side: quota, placement, alignment and explanations."""

__version__ = "0.1.0"
