"""Control plane side: quota, placement, alignment and explanations."""
