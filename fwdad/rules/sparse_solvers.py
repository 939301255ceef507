"""Sparse factorisations of SciPy that are kept: ``splu(a).solve(b)``.

The matrix of the factors is a constant here (``scipy.sparse.linalg.spsolve`` takes an active one).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.adjoints import Space, into, transpose
from fwdad.rules.by_name import apply_linear
from fwdad.rules.define import frule
from fwdad.rules.registry import when_imported

_OPPOSITE = {"N": "H", "H": "N"}


def _solve(lu: Any, b_dot: Any, trans: str) -> Any:
    """Solve for a tangent, all lanes as columns."""
    return apply_linear(
        type(lu).solve,
        (lu, b_dot),
        1,
        lambda columns: lu.solve(np.asfortranarray(columns), trans),
        trans=trans,
    )


def superlu_solve_frule(primals, tangents, trans="N"):
    """Push tangents through ``scipy.sparse.linalg.SuperLU.solve``: linear in the right side.

    Cost: no factorisation; one pair of sparse triangular solves per lane and column.
    """
    lu, b = primals
    return lu.solve(b, trans), _solve(lu, tangents[1], trans)


def superlu_solve_transpose_b(y_bar: Any, lu: Any, b: Space, trans: str = "N") -> Any:
    """The adjoint of A⁻¹ is A⁻ᴴ; that of A⁻ᵀ is conj(A)⁻¹."""
    if trans == "T":
        return into(b, np.conjugate(_solve(lu, np.conjugate(y_bar), "N")))
    return into(b, _solve(lu, y_bar, _OPPOSITE[trans]))


def _register(superlu: Any) -> None:
    signature = "(self, rhs, trans='N')"
    frule(superlu.solve, argnums=("self", "rhs"), signature=signature)(superlu_solve_frule)
    transpose(superlu.solve, argnum=1)(superlu_solve_transpose_b)


when_imported("scipy.sparse.linalg.SuperLU", _register)
