"""Functions of the stored elements of SciPy's sparse arrays: sums over places, products, solves.

The sparse arrays themselves are composites (``fwdad/tangents/sparse.py``); the builder takes their
methods down to these functions, and to indexing. The matrix of factors that are kept,
``splu(a).solve(b)``, is a constant here; ``scipy.sparse.linalg.spsolve`` takes an active one.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fwdad.rules.core.adjoints import Space, into, transpose
from fwdad.rules.core.by_name import apply_linear, refuse_symbols
from fwdad.rules.core.define import call_rule, frule, linear, multilinear
from fwdad.rules.core.registry import when_imported
from fwdad.tangents.laws.listing import cast
from fwdad.tangents.sparse import coordinates, scatter_add, sparse_product, sparse_solve
from fwdad.tangents.zero import ZERO

linear(scatter_add)


@transpose(scatter_add)
def scatter_add_transpose(y_bar, values, places, size):
    """Each value receives the cotangent of its place."""
    return np.take(y_bar, places)


multilinear(sparse_product, argnums=("data", "x"))


@transpose(sparse_product, argnum=0)
def sparse_product_data_transpose(y_bar, data, x, layout, major, minor, shape):
    """An element at (i, j) receives ``y_bar[i] conj(x[j])``."""
    rows, cols = coordinates(layout, major, minor)
    data_bar = y_bar[rows] * np.conj(x)[cols]
    if len(x.shape) == 2:
        data_bar = np.sum(data_bar, axis=1)
    return cast(data_bar, data.dtype)


@transpose(sparse_product, argnum=1)
def sparse_product_x_transpose(y_bar, data, x, layout, major, minor, shape):
    """The product with the conjugate transpose: x_bar[j] is a sum of ``conj(a_ij) y_bar[i]``."""
    rows, cols = coordinates(layout, major, minor)
    columns = x.size // max(x.shape[0], 1)
    each = np.reshape(np.conj(data), (-1, 1)) * np.reshape(y_bar, (-1, columns))[rows]
    places = cols[:, None] * columns + np.arange(columns)
    x_bar = np.bincount(places.reshape(-1), weights=np.reshape(each, -1), minlength=x.size)
    return cast(np.reshape(x_bar, x.shape), x.dtype)


def sparse_solution(data, b, layout, indptr, indices, options):
    """``x`` of :func:`sparse_solve` alone: it is linear in b."""
    return sparse_solve(data, b, layout, indptr, indices, options)[0]


def _solve_columns(data: Any, b_dot: Any, y: Any, **places: Any) -> Any:
    """Solve for a tangent, all lanes as columns of one right-hand side."""
    refuse_symbols(b_dot)
    return apply_linear(
        sparse_solution,
        (data, b_dot),
        1,
        lambda columns: sparse_solution(data, columns.astype(data.dtype), **places),
        y=y,
        **places,
    )


@frule(sparse_solve, argnums=("data", "b"))
def sparse_solve_frule(primals, tangents, *, layout, indptr, indices, options):
    r"""Push tangents through ``scipy.sparse.linalg.spsolve``.

    .. math:: A x = b \;\Rightarrow\; \dot x = A^{-1}(\dot b - \dot A x)

    Cost: two factorisations, one for the primal and one shared by all lanes, which are columns of
    one right-hand side.
    Source: Giles (2008), "Collected matrix derivative results", section 2.3.1.
    """
    data, b = primals
    data_dot, b_dot = tangents
    places = {"layout": layout, "indptr": indptr, "indices": indices, "options": options}
    x, info = sparse_solve(data, b, **places)
    n = len(indptr) - 1
    _, moved = call_rule(
        sparse_product,
        (data, x),
        (data_dot, ZERO),
        layout=layout,
        major=indptr,
        minor=indices,
        shape=(n, n),
    )
    return (x, info), (_solve_columns(data, b_dot - moved, x, **places), ZERO)


@transpose(sparse_solution, argnum=1)
def sparse_solution_transpose(y_bar, data, b, layout, indptr, indices, options):
    """The adjoint of A⁻¹ is A⁻ᴴ: the same elements, by columns instead of by rows."""
    layout = {"csr": "csc", "csc": "csr"}[layout]
    places = {"layout": layout, "indptr": indptr, "indices": indices, "options": options}
    return into(b, _solve_columns(np.conj(data), y_bar, None, **places))


# -- factors that are kept

_OPPOSITE = {"N": "H", "H": "N"}


def _solve(lu: Any, b_dot: Any, trans: str) -> Any:
    """Solve for a tangent, all lanes as columns."""
    refuse_symbols(b_dot)
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
    refuse_symbols(b)
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
