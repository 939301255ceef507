"""Whether Numba is there; everything that needs it asks here first."""

from __future__ import annotations

import functools
import importlib.util

from fwdad.errors import Location


@functools.cache
def have_numba() -> bool:
    """Whether Numba can be imported (it is the extra ``fwdad[jit]``)."""
    return importlib.util.find_spec("numba") is not None


HELPERS = frozenset({
    "broadcast_length", "check_length", "check_shape", "check_stack", "complex_divide",
    "default_snapshots", "divide", "equal_length",
    "float_floor_divide", "float_power", "float_remainder", "grown", "in_domain", "in_range",
    "int_add", "int_floor_divide", "int_mul", "int_power", "int_remainder", "int_sub",
    "leaf_of_numbers", "loose", "most_of_unknown", "next_snapshot", "next_stop", "place",
    "places_beside", "snapshots_in", "thinned", "thinned_numbers", "trips",
    "math_power", "numpy_int_power", "python_floor_divide", "python_int_divide",
    "python_int_remainder", "python_remainder", "scaled", "stack_place", "summed", "to_int",
})  # fmt: skip
"""The names of ``compiled_math`` that generated code may use."""
LINALG_HELPERS = frozenset({"lu_factor", "lu_solve_matrix", "lu_solve_vector", "matrix_power"})
"""Those of ``compiled_linalg``, which stand on LAPACK."""


class CannotCompileError(Exception):
    """A program holds something that the Numba source cannot express.

    Parameters
    ----------
    what : str
        The operation.
    location : Location or None
        The user's line.
    """

    def __init__(self, what: str, location: Location | None = None) -> None:
        where = f" ({location.filename}:{location.line})" if location is not None else ""
        super().__init__(f"{what}{where}")
        self.what = what
        self.location = location
