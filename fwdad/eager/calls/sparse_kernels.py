"""The C kernels of ``scipy.sparse._sparsetools``, written with indexing, products and sums.

A kernel writes into its last arguments. Where one of the others is active, its handler computes
what is written from the stored elements, which are duals, and stores it there. Where SciPy drops
stored zeros, an active element is kept: its value is zero, its derivative is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.eager.activity import is_active
from fwdad.eager.calls import numpy_calls
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.explicit import explicit
from fwdad.eager.run import STATE
from fwdad.tangents.plain import plain
from fwdad.tangents.sparse import coordinates, scatter_add, sparse_product

Kernel = Callable[..., Any]
KERNELS: dict[str, tuple[tuple[int, ...], Callable[..., Any]]] = {}
"""name -> the positions that the kernel writes, and what to do where an argument is active."""


def _kernel(
    *names: str, writes: tuple[int, ...] = (-1,)
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def register(body: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            KERNELS[name] = (writes, body)
        return body

    return register


def guarded(kernel: Kernel, writes: tuple[int, ...], body: Callable[..., Any]) -> Kernel:
    """The handler of one kernel: the kernel itself as long as nothing is active."""

    def handle(args: tuple[Any, ...], _kwargs: dict[str, Any]) -> Any:
        if is_active(args):
            return body(kernel, *args)
        if STATE.run is not None:
            for k in writes:
                STATE.run.writes(args[k])
        return kernel(*args)

    return handle


def _add_into(out: Any, value: Any) -> None:
    numpy_calls.write_out(out, explicit(out) + value)


def _run_logged(kernel: Kernel, args: list[Any], integers: tuple[int, ...]) -> None:
    """Run a kernel for its integer outputs, which are arrays of the program."""
    if STATE.run is not None:
        for k in integers:
            STATE.run.writes(args[k])
    kernel(*args)


# -- products


@_kernel("csr_matvec", "csc_matvec")
def _matvec(kernel: Kernel, m: int, n: int, major: Any, minor: Any, *rest: Any) -> None:
    data, x, y = rest
    _add_into(y, product(kernel.__name__[:3], (major, minor), (m, n), data, x))


@_kernel("csr_matvecs", "csc_matvecs")
def _matvecs(
    kernel: Kernel, m: int, n: int, columns: int, major: Any, minor: Any, *rest: Any
) -> None:
    data, x, y = rest
    x = np.reshape(explicit(x), (n, columns))
    found = product(kernel.__name__[:3], (major, minor), (m, n), data, x)
    _add_into(y, np.reshape(found, y.shape))


@_kernel("coo_matvec")
def _coo_matvec(_kernel: Kernel, _nnz: int, rows: Any, cols: Any, *rest: Any) -> None:
    data, x, y = rest
    _add_into(y, product("coo", (rows, cols), (y.size, x.size), data, x))


@_kernel("coo_matmat_dense")
def _coo_matmat_dense(
    _kernel: Kernel, _nnz: int, columns: int, rows: Any, cols: Any, *rest: Any
) -> None:
    data, x, y = rest
    x = np.reshape(explicit(x), (-1, columns))
    shape = (y.size // columns, x.shape[0])
    _add_into(y, np.reshape(product("coo", (rows, cols), shape, data, x), y.shape))


@_kernel("dia_matvec")
def _dia_matvec(
    _kernel: Kernel, m: int, n: int, _count: int, _length: int, offsets: Any, *rest: Any
) -> None:
    data, x, y = rest
    rows, cols, stored = diagonals(offsets, plain(data).shape, (m, n))
    found = product("coo", (rows, cols), (m, n), explicit(data)[stored], np.ravel(explicit(x)))
    _add_into(y, np.reshape(found, y.shape))


def product(
    layout: str, coordinates: tuple[Any, Any], shape: tuple[int, int], data: Any, x: Any
) -> Any:
    """A sparse matrix times a dense vector or matrix, with the tangents of both."""
    major, minor = coordinates
    data = explicit(data)
    if layout != "coo":
        stored = int(major[-1])
        if stored != len(minor):  # SciPy allows unused room after the last element
            data, minor = data[:stored], minor[:stored]
    return call(sparse_product, data, explicit(x), layout, major, minor, shape)


def diagonals(offsets: Any, of: tuple[int, ...], shape: tuple[int, int]) -> tuple[Any, Any, Any]:
    """Rows and columns of the elements that a DIA matrix stores, and their index in its data."""
    cols = np.broadcast_to(np.arange(of[1]), of)
    rows = cols - np.asarray(offsets)[:, None]
    stored = (rows >= 0) & (rows < shape[0]) & (cols < shape[1])
    index = np.promote_types(np.asarray(offsets).dtype, np.int32)
    return rows[stored].astype(index), cols[stored].astype(index), np.nonzero(stored)


# -- to dense arrays, and single elements


@_kernel("csr_todense")
def _csr_todense(_kernel: Kernel, _m: int, n: int, indptr: Any, indices: Any, *rest: Any) -> None:
    data, dense = rest
    rows, cols = coordinates("csr", indptr, indices)
    _scatter(data, rows.astype(np.int64) * n + cols[: rows.size], dense)


@_kernel("coo_todense", writes=(-2,))
def _coo_todense(
    _kernel: Kernel, m: int, n: int, _nnz: int, rows: Any, cols: Any, *rest: Any
) -> None:
    data, dense, fortran = rest
    rows, cols = rows.astype(np.int64), cols.astype(np.int64)
    _scatter(data, cols * m + rows if fortran else rows * n + cols, dense)


@_kernel("coo_todense_nd", writes=(-2,))
def _coo_todense_nd(
    _kernel: Kernel, strides: Any, nnz: int, ndim: int, coords: Any, *rest: Any
) -> None:
    data, dense, _fortran = rest
    positions = np.asarray(strides, np.int64) @ np.reshape(coords, (ndim, nnz))
    _scatter(data, positions, dense)


def _scatter(data: Any, positions: Any, dense: Any) -> None:
    values = call(scatter_add, explicit(data)[: positions.size], positions, plain(dense).size)
    _add_into(dense, np.reshape(values, dense.shape))


@_kernel("csr_diagonal")
def _csr_diagonal(
    _kernel: Kernel, k: int, _m: int, _n: int, indptr: Any, indices: Any, *rest: Any
) -> None:
    data, diagonal = rest
    rows, cols = coordinates("csr", indptr, indices)
    (taken,) = np.nonzero(cols[: rows.size] - rows == k)
    values = explicit(data)[taken]
    positions = rows[taken] - max(0, -k)
    numpy_calls.write_out(diagonal, call(scatter_add, values, positions, diagonal.size))


@_kernel("csr_sample_values")
def _csr_sample_values(
    _kernel: Kernel, m: int, n: int, indptr: Any, indices: Any, data: Any, *rest: Any
) -> None:
    count, at_rows, at_cols, samples = rest
    rows, cols = coordinates("csr", indptr, indices)
    keys = rows * n + cols[: rows.size]
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    wanted = np.where(at_rows < 0, at_rows + m, at_rows).astype(np.int64) * n
    wanted += np.where(at_cols < 0, at_cols + n, at_cols)
    first, last = (np.searchsorted(keys, wanted, side) for side in ("left", "right"))
    sample, within = _spread(last - first)
    taken = order[first[sample] + within]
    value = call(scatter_add, explicit(data)[taken], sample, count)
    numpy_calls.write_out(samples, value)


def _spread(counts: Any) -> tuple[Any, Any]:
    """``(0, …, 0, 1, …)`` with counts[k] times k, and the position of each within its k."""
    which = np.repeat(np.arange(counts.size), counts)
    within = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, within


@_kernel("csr_tobsr", writes=(7, 8, 9))
def _csr_tobsr(kernel: Kernel, m: int, n: int, p: int, q: int, *rest: Any) -> None:
    indptr, indices, data, block_indptr, block_indices, blocks = rest
    rows, cols = coordinates("csr", indptr, indices)
    cols = cols[: rows.size]
    ones, room = np.ones(plain(data).size), np.zeros(plain(blocks).size)
    tried = [m, n, p, q, indptr, indices, ones, block_indptr, block_indices, room]
    _run_logged(kernel, tried, (7, 8))
    wide = n // q
    of_blocks = _keys(block_indptr, block_indices, wide)
    order = np.argsort(of_blocks)
    block = order[np.searchsorted(of_blocks[order], rows // p * wide + cols // q)]
    _scatter(data, block * (p * q) + rows % p * q + cols % q, blocks)


# -- moves: positions in place of the elements show where each one goes

# name: position of the elements, of the elements moved, of the integers that are written
_MOVES: dict[str, tuple[int, int, tuple[int, ...]]] = {
    "coo_tocsr": (5, 8, (6, 7)),
    "csr_tocsc": (4, 7, (5, 6)),
    "csc_tocsr": (4, 7, (5, 6)),
    "csr_sort_indices": (3, 3, (2,)),
    "csr_row_index": (4, 6, (5,)),
    "csr_row_slice": (5, 7, (6,)),
    "csr_column_index2": (4, 6, (5,)),
    "csr_hstack": (5, 8, (6, 7)),
    "bsr_tocsr": (6, 9, (7, 8)),
    "bsr_transpose": (6, 9, (7, 8)),
    "bsr_sort_indices": (6, 6, (5,)),
}


def _move(kernel: Kernel, *args: Any) -> None:
    source, target, integers = _MOVES[kernel.__name__]
    data, out = explicit(args[source]), args[target]
    positions = np.arange(1.0, plain(data).size + 1).reshape(plain(data).shape)
    moved = positions if source == target else np.zeros(plain(out).shape)
    tried = list(args)
    tried[source], tried[target] = positions, moved
    _run_logged(kernel, tried, integers)
    flat = np.reshape(moved, -1).astype(np.int64) - 1
    (filled,) = np.nonzero(flat >= 0)
    values = np.reshape(data, -1)[flat[filled]]
    if filled.size == flat.size:
        numpy_calls.write_out(out, np.reshape(values, plain(out).shape))
    else:
        numpy_calls.write_out(out, _placed(values, filled, plain(out).shape))


def _placed(values: Any, positions: Any, shape: tuple[int, ...]) -> Any:
    size = int(np.prod(shape, dtype=int))
    return np.reshape(call(scatter_add, values, positions, size), shape)


for _name, (_source, _target, _integers) in _MOVES.items():
    KERNELS[_name] = ((_target, *_integers), _move)


@_kernel("get_csr_submatrix", writes=())
def _get_csr_submatrix(kernel: Kernel, *args: Any) -> tuple[Any, Any, Any]:
    data = explicit(args[4])
    tried = list(args)
    tried[4] = np.arange(float(plain(data).size))
    indptr, indices, positions = kernel(*tried)
    return indptr, indices, data[np.asarray(positions).astype(np.int64)]


# -- changes in place


@_kernel("csr_sum_duplicates", writes=(2, 3, 4))
def _csr_sum_duplicates(
    kernel: Kernel, m: int, n: int, indptr: Any, indices: Any, data: Any
) -> None:
    rows, cols = coordinates("csr", indptr, indices)
    keys = rows * n + cols[: rows.size]
    group = np.cumsum(np.diff(keys, prepend=keys[:1]) != 0)
    count = int(group[-1]) + 1 if group.size else 0
    sums = call(scatter_add, explicit(data)[: keys.size], group, count)
    _run_logged(kernel, [m, n, indptr, indices, np.ones(plain(data).size)], (2, 3))
    numpy_calls.write_out(data[:count], sums)


@_kernel("csr_eliminate_zeros", writes=(2, 3, 4))
def _csr_eliminate_zeros(_kernel: Kernel, *_args: Any) -> None:
    """Keep every active element: even one that is zero has a derivative."""


@_kernel("csr_scale_rows", "csr_scale_columns", writes=(4,))
def _csr_scale(
    kernel: Kernel, _m: int, _n: int, indptr: Any, indices: Any, data: Any, factors: Any
) -> None:
    rows, cols = coordinates("csr", indptr, indices)
    where = rows if kernel.__name__ == "csr_scale_rows" else cols[: rows.size]
    scaled = explicit(data)[: rows.size] * explicit(factors)[where]
    numpy_calls.write_out(data[: rows.size], scaled)


# -- two sparse operands

_ELEMENTWISE = {
    "plus": np.add,
    "minus": np.subtract,
    "elmul": np.multiply,
    "eldiv": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
}


@_kernel(*(f"csr_{_name}_csr" for _name in _ELEMENTWISE), writes=(8, 9, 10))
def _elementwise(kernel: Kernel, _m: int, n: int, *rest: Any) -> None:
    a, b, out = rest[:3], rest[3:6], rest[6:]
    name = kernel.__name__.split("_")[1]
    keys = [_keys(indptr, indices, n) for indptr, indices, _ in (a, b)]
    union = np.intersect1d(*keys) if name == "elmul" else np.union1d(*keys)
    values = [_at(union, k, data) for k, (_, _, data) in zip(keys, (a, b), strict=True)]
    _write_csr(out, union, n, call(_ELEMENTWISE[name], *values))


def _keys(indptr: Any, indices: Any, n: int) -> Any:
    rows, cols = coordinates("csr", indptr, indices)
    return rows * n + cols[: rows.size]


def _at(union: Any, keys: Any, data: Any) -> Any:
    """The elements at the positions of a union; those that are not stored are zero."""
    positions = np.searchsorted(union, keys)
    (stored,) = np.nonzero(np.isin(keys, union))
    return call(scatter_add, explicit(data)[stored], positions[stored], union.size)


def _write_csr(out: Any, keys: Any, n: int, values: Any) -> None:
    """Store a CSR matrix, given by sorted positions and values, into arrays with enough room."""
    indptr, indices, data = out
    if STATE.run is not None:
        STATE.run.writes(indptr)
        STATE.run.writes(indices)
    indptr[:] = np.searchsorted(keys, np.arange(len(indptr), dtype=np.int64) * n)
    indices[: keys.size] = keys % n
    numpy_calls.write_out(data[: keys.size], values)


@_kernel(*(f"csr_{_name}_csr" for _name in ("ne", "lt", "gt", "le", "ge")), writes=(8, 9, 10))
def _comparison(kernel: Kernel, *args: Any) -> None:
    _run_logged(kernel, [plain(arg) for arg in args], (8, 9, 10))


@_kernel("csr_matmat", writes=(8, 9, 10))
def _csr_matmat(_kernel: Kernel, _m: int, n: int, *rest: Any) -> None:
    """Sum ``a_ik b_kj`` over the pairs of stored elements that meet, in SciPy's order."""
    (a_indptr, a_indices, a), (b_indptr, _, b), out = rest[:3], rest[3:6], rest[6:]
    rows, between = coordinates("csr", a_indptr, a_indices)
    between = between[: rows.size]
    of_a, within = _spread(np.diff(b_indptr)[between])
    of_b = b_indptr[between[of_a]] + within
    keys, positions = np.unique(rows[of_a] * n + rest[4][of_b], return_inverse=True)
    products = explicit(a)[of_a] * explicit(b)[of_b]
    _write_csr(out, keys, n, call(scatter_add, products, positions.reshape(-1), keys.size))


# -- older releases have kernels of their own for CSC: those of CSR, for the transposed matrix


@_kernel("csc_diagonal")
def _csc_diagonal(kernel: Kernel, k: int, m: int, n: int, *rest: Any) -> None:
    _csr_diagonal(kernel, -k, n, m, *rest)


@_kernel(*(f"csc_{_name}_csc" for _name in _ELEMENTWISE), writes=(8, 9, 10))
def _csc_elementwise(kernel: Kernel, m: int, n: int, *rest: Any) -> None:
    _elementwise(kernel, n, m, *rest)


@_kernel(*(f"csc_{_name}_csc" for _name in ("ne", "lt", "gt", "le", "ge")), writes=(8, 9, 10))
def _csc_comparison(kernel: Kernel, *args: Any) -> None:
    _comparison(kernel, *args)


@_kernel("csc_matmat", writes=(8, 9, 10))
def _csc_matmat(kernel: Kernel, m: int, n: int, *rest: Any) -> None:
    a, b, out = rest[:3], rest[3:6], rest[6:]
    _csr_matmat(kernel, n, m, *b, *a, *out)
