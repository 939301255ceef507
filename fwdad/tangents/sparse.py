"""SciPy's sparse arrays: composites with one leaf, ``.data``, and what is linear in that leaf.

``scipy.sparse`` is not imported here before somebody's sparse array shows up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.tangents.registrations import Registration, register, register_lazily

FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@dataclass(frozen=True)
class Pattern:
    """A sparse array without its elements.

    Attributes
    ----------
    cls : type
        Its class.
    attributes : dict
        Its indices, shape and flags.
    shape : tuple of int
        The shape of ``.data``.
    """

    cls: type
    attributes: dict[str, Any]
    shape: tuple[int, ...]


def _flatten(a: Any) -> tuple[tuple[Any, ...], Pattern]:
    attributes = {name: _copied(value) for name, value in vars(a).items() if name != "data"}
    return (a.data,), Pattern(type(a), attributes, a.data.shape)


def _unflatten(pattern: Pattern, children: tuple[Any, ...]) -> Any:
    """A sparse array of a pattern and other elements; its constructor is not run.

    What is not one number per stored element (K directions, a Jacobian's block) is no sparse array:
    it comes as it is.
    """
    (data,) = children
    if getattr(data, "shape", None) != pattern.shape:
        return data
    made: Any = object.__new__(pattern.cls)
    for name, value in pattern.attributes.items():
        made.__dict__[name] = _copied(value)
    made.__dict__["data"] = data
    return made


def _copied(value: Any) -> Any:
    # SciPy sorts indices in place where it needs to: the copy must not move its original's
    if isinstance(value, tuple):
        return tuple(_copied(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _mismatch(pattern: Pattern, other: Pattern) -> str | None:
    """What makes a sparse seed unfit: a tangent has the pattern of its primal, entry by entry."""
    first, second = pattern.attributes, other.attributes
    if first["_shape"] != second["_shape"]:
        return f"a {other.cls.__name__} of shape {second['_shape']}; the shape is {first['_shape']}"
    for name in ("indptr", "indices", "offsets", "coords"):
        if name in first and not _equal(first[name], second[name]):
            return (
                f"a {other.cls.__name__} with other stored elements (.{name} differs). Give an "
                "array of the shape of x.data, or K of them stacked in front"
            )
    return None


def _equal(first: Any, second: Any) -> bool:
    if isinstance(first, tuple):
        return len(first) == len(second) and all(map(np.array_equal, first, second))
    return bool(np.array_equal(first, second))


def _enter() -> None:
    import scipy.sparse  # noqa: PLC0415  (whoever has a sparse array has imported it)

    for kind in ("array", "matrix"):
        for name in FORMATS:
            cls = getattr(scipy.sparse, f"{name}_{kind}")
            register(cls, Registration(_flatten, _unflatten, _mismatch, subclasses=True))
        for name in ("dok", "lil"):
            refused = (
                f"a {name}_{kind}, which keeps its elements in Python containers: write x.tocsr()"
            )
            constant = Registration(
                lambda a: ((), a), lambda a, _: a, subclasses=True, refused=refused
            )
            register(getattr(scipy.sparse, f"{name}_{kind}"), constant)


register_lazily("scipy.sparse", _enter)


# -- what is linear in the stored elements


def is_of_sparse_arrays(x: Any) -> bool:
    """Whether a function, a class or an object is SciPy's, and of its sparse arrays."""
    module = getattr(x if callable(x) else type(x), "__module__", None) or ""
    return module.startswith("scipy.sparse._")


UNTRACED = (
    "SciPy's sparse arrays cannot be traced: they have derivatives without `jit`; on a tape, use a "
    "dense array"
)


def scatter_add(values: Any, places: Any, size: int) -> Any:
    """``y[places[k]] += values[k]`` for all k, from zero, in that order.

    Parameters
    ----------
    values : ndarray, shape (m,)
        What is added up.
    places : ndarray of int, shape (m,)
        Where; a place may come again.
    size : int
        The length of y.

    Returns
    -------
    ndarray, shape (size,)
    """
    y = np.zeros(size, values.dtype)
    np.add.at(y, places, values)
    return y


def sparse_product(
    data: Any, x: Any, layout: str, major: Any, minor: Any, shape: tuple[int, int]
) -> Any:
    """``A @ x`` for a sparse matrix given by its stored elements and where they stand.

    Parameters
    ----------
    data : ndarray, shape (nnz,)
        The stored elements.
    x : ndarray, shape (n,) or (n, k)
        The dense factor.
    layout : {"csr", "csc", "coo"}
        How the places are told.
    major, minor : ndarray of int
        ``indptr`` and ``indices``; for ``"coo"`` rows and columns.
    shape : tuple of int
        Of the matrix.

    Returns
    -------
    ndarray, shape (m,) or (m, k)
        Computed by SciPy's own kernels, so it has the value that ``A @ x`` has.
    """
    from scipy.sparse import _sparsetools as kernels  # noqa: PLC0415  (see the top)

    m, n = shape
    y = np.zeros((m, *x.shape[1:]), np.result_type(data, x))
    if layout == "coo":
        for k in np.ndindex(x.shape[1:]):
            column = np.zeros(m, y.dtype)
            where = (slice(None), *k)
            kernels.coo_matvec(data.size, major, minor, data, x[where], column)
            y[where] = column
    elif x.ndim == 1:
        getattr(kernels, f"{layout}_matvec")(m, n, major, minor, data, x, y)
    else:
        kernel = getattr(kernels, f"{layout}_matvecs")
        kernel(m, n, x.shape[1], major, minor, data, x.ravel(), y.reshape(-1))
    return y


def sparse_solve(
    data: Any, b: Any, layout: str, indptr: Any, indices: Any, options: dict[str, Any]
) -> tuple[Any, int]:
    """Solve ``A x = b`` for a sparse matrix given by its stored elements, by SuperLU.

    Parameters
    ----------
    data : ndarray, shape (nnz,)
        The stored elements.
    b : ndarray, shape (n,) or (n, k)
        The right-hand sides, of the dtype of ``data``.
    layout : {"csr", "csc"}
        How the places are told.
    indptr, indices : ndarray of int
        The places.
    options : dict
        SuperLU's.

    Returns
    -------
    x : ndarray
        Of the shape of b.
    info : int
        Zero, or that the matrix is singular: then x means nothing.
    """
    from scipy.sparse.linalg._dsolve import _superlu  # noqa: PLC0415  (see the top)

    n, stored = len(indptr) - 1, int(indptr[-1])
    flag = int(layout == "csc")
    return _superlu.gssv(n, stored, data, indices, indptr, b, flag, options=options)


def coordinates(layout: str, major: Any, minor: Any) -> tuple[Any, Any]:
    """Rows and columns of the stored elements, in the order in which they are stored."""
    if layout == "coo":
        return major, minor
    line = np.repeat(np.arange(len(major) - 1), np.diff(major))
    return (line, minor) if layout == "csr" else (minor, line)
