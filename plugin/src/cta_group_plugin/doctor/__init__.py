"""``cta-group-plugin doctor``: what is wrong with this node, asked of the driver, MPS, kubelet and the host themselves.

``gather`` asks; ``findings`` looks at the answers; ``show`` prints. Nothing is changed, and no cluster is needed.
"""
