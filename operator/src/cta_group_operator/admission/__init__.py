"""The admission endpoint: what happens to a pod that asks for groups when it is created.

``decision`` decides with pure values, ``server`` answers the API server's questions with it, ``rotation`` decides about
certificates and ``certificates`` carries that out. ``run`` is what the application starts.
"""
