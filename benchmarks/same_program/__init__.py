"""The same programs for several tools: what runs as it is, and what has to be rewritten.

``<name>.py`` is NumPy as people write it; ``<name>_jax.py`` and ``<name>_autograd.py`` are what a
user of these tools writes instead, where the program does not run with only ``np`` changed. Each
file has ``loss``, a function of one array.
"""
