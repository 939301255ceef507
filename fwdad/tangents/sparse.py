"""SciPy's sparse arrays: composites with one leaf, ``.data``, and what is linear in that leaf.

``scipy.sparse`` is not imported before the first sparse array appears.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.ops.record import Layout, op
from fwdad.tangents.registrations import Registration, register, register_lazily

FORMATS = ("csr", "csc", "coo", "bsr", "dia")


@dataclass(frozen=True)
class Pattern:
    """A sparse array's class, indices and flags without its elements; ``.data`` has ``shape``."""

    cls: type
    attributes: dict[str, Any]
    shape: tuple[int, ...]


def flatten_sparse(a: Any) -> tuple[tuple[Any, ...], Pattern]:
    """The elements of a sparse array, and what they are the elements of."""
    attributes = {name: _copied(value) for name, value in vars(a).items() if name != "data"}
    return (a.data,), Pattern(type(a), attributes, a.data.shape)


def unflatten_sparse(pattern: Pattern, children: tuple[Any, ...]) -> Any:
    """A sparse array of a pattern and other elements; its constructor is not run.

    What is not one number per stored element (K directions, a Jacobian's block) is no sparse array:
    it comes as it is.
    """
    (data,) = children
    if getattr(data, "shape", None) != pattern.shape:
        return data
    array: Any = object.__new__(pattern.cls)
    for name, value in pattern.attributes.items():
        array.__dict__[name] = _copied(value)
    array.__dict__["data"] = data
    return array


def _copied(value: Any) -> Any:
    # SciPy sorts indices in place where it needs to: the copy must not move its original's
    if isinstance(value, tuple):
        return tuple(_copied(item) for item in value)
    return value.copy() if isinstance(value, np.ndarray) else value


def _mismatch(pattern: Pattern, other: Pattern) -> str | None:
    """Why a sparse seed does not fit: a tangent has the pattern of its primal, entry by entry."""
    first, second = pattern.attributes, other.attributes
    if first["_shape"] != second["_shape"]:
        return f"a {other.cls.__name__} of shape {second['_shape']}; the shape is {first['_shape']}"
    for name in ("indptr", "indices", "offsets", "coords"):
        if name in first and not _equal(first[name], second[name]):
            return (
                f"a {other.cls.__name__} with other stored elements (.{name} differs). Pass an "
                "array of the shape of x.data, or K of them stacked along a new first axis"
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
            register(
                cls, Registration(flatten_sparse, unflatten_sparse, _mismatch, subclasses=True)
            )
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
    "SciPy's sparse arrays cannot be traced: differentiate them without `jit`, or use a dense array"
)


def scatter_add(values: Any, places: Any, size: int) -> Any:
    """``y[places[k]] += values[k]`` for all k, from zero, in that order; places may repeat.

    Shapes: values (m,), places (m,), y (size,).
    """
    y = np.zeros(size, values.dtype)
    np.add.at(y, places, values)
    return y


op(scatter_add, layout=Layout.C)


def sparse_product(
    data: Any, x: Any, layout: str, major: Any, minor: Any, shape: tuple[int, int]
) -> Any:
    """``A @ x`` for a sparse matrix given by its stored elements, shape (nnz,).

    SciPy's own kernels compute it. x is (n,) or (n, k). ``major`` and ``minor`` are ``indptr`` and
    ``indices``; for the layout ``"coo"`` rows and columns.
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
    """Solve ``A x = b`` by SuperLU for a sparse matrix given by its stored elements (nnz,).

    b is (n,) or (n, k), of the dtype of ``data``; the layout is ``"csr"`` or ``"csc"``. Returns x
    and ``info``: unless that is zero the matrix is singular and x has no meaning.
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
