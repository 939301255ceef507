"""NumPy's functions written in Python, said in Python that can be traced in line.

NumPy's own source is traced where it can be. Where it cannot (it asks C code, catches exceptions,
decides on values), what stands here is traced in its place: the same function, for the arguments
that it knows. Importing this installs it.
"""

from fwdad.frontend.numpy_sources import (  # noqa: F401  (install themselves)
    differences,
    functions,
    parts,
    places,
    roots,
    statistics,
    steps,
)
