"""The kubectl plugin: what a person asks about groups, quotas and plans."""
