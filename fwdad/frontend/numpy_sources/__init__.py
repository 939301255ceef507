"""NumPy's functions written in Python, rewritten in Python that can be traced in line.

NumPy's own source is traced where that is possible. Where it is not (it calls C code, catches
exceptions, decides on values), the function here is traced in its place, for the arguments that it
supports. Importing this installs it.
"""

from fwdad.frontend.numpy_sources import (  # noqa: F401  (install themselves)
    differences,
    functions,
    matrices,
    parts,
    places,
    roots,
    statistics,
    steps,
)
