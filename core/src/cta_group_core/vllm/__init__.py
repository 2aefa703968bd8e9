"""vLLM as seen from its pod: which container it is, what its arguments say, and which of them fit a slice.

Nothing here runs or imports vLLM. ``words`` finds the command line in a container, ``scan`` reads it as vLLM's argparse
would, ``arguments`` answers questions about it, ``memory`` computes what fits a slice, ``align`` decides the edits.
"""
