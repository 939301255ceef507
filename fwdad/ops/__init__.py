"""What is known of each function as an operation: one record for each, and one way to ask.

In comes a function of Python's, NumPy's or the library's own; out goes its :class:`Record`: memory,
layout, effects, result, algebra, cost. Analyses, transforms and code generation ask here, and list
no functions themselves.
"""

from fwdad.ops import (  # noqa: F401  (they fill the table)
    indexing,
    iterables,
    joining,
    linalg,
    making,
    outside,
    python,
    reductions,
    ufuncs,
    views,
)
from fwdad.ops.record import (
    Algebra,
    Cost,
    Layout,
    Memory,
    Record,
    Risk,
    functions_with,
    is_of_polynomials,
    own_op,
    record_of,
)

# isort: split
from fwdad.ops import pure  # noqa: F401  (last, since it adds to records)

__all__ = [
    "Algebra",
    "Cost",
    "Layout",
    "Memory",
    "Record",
    "Risk",
    "functions_with",
    "is_of_polynomials",
    "own_op",
    "record_of",
]
