"""``kubectl cta doctor``: what is wrong with the release and its nodes, and how to mend it.

``gather`` reads the cluster once; the ``*_findings`` modules look at what was read and tell what is wrong; ``show``
prints.
"""
