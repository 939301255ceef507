"""The programs whose gradients are timed, as people write them in NumPy.

Those of the PolyBench family, and others, written from their definitions, one file for each family.
Each returns one number: the sum of its output arrays, weighted where the gradient of the plain sum
vanishes.
"""

from benchmarks.reverse_programs import (
    bundle,
    factorisations,
    fields,
    learning,
    products,
    stencils,
    steppers,
)

PROBLEMS = [
    *stencils.PROBLEMS,
    *factorisations.PROBLEMS,
    *products.PROBLEMS,
    *steppers.PROBLEMS,
    *learning.PROBLEMS,
    *fields.PROBLEMS,
    *bundle.PROBLEMS,
]
