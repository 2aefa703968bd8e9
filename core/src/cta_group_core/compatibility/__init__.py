"""What driver, CUDA, GPU, host and image must be for each other, as findings in words with the way to mend each.

``versions`` reads version texts, ``enforcement`` says what each way of limiting a slice needs, ``images`` which CUDA a
vLLM image was built with. The ``*_findings`` modules look at facts and tell what is wrong with them: ``driver``,
``gpu``, ``host`` and ``image``; ``node_findings`` puts those of a node together. Facts come in as values, nothing is
looked up here.
"""
