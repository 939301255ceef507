"""The closed list: products with a primal, and the solution for right-hand sides.

The transposes of these functions are next to their rules in ``fwdad/rules``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.errors import NonlinearTangentError
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.laws.listing import law
from fwdad.tangents.plain import plain
from fwdad.tangents.scattered import stays_placed, summed
from fwdad.tangents.symbolic import is_known
from fwdad.tangents.zero import ZERO, Zero


def matmul(a: Any, b: Any) -> Chunk:
    """``a @ b``, one of them a chunk; ``linalg.py`` enters it, with NumPy's ``axes``."""
    if isinstance(a, Chunk) and isinstance(b, Chunk):
        raise NonlinearTangentError(f"{a!r} @ {b!r}: a product of two tangents is not linear")
    if isinstance(a, Zero) or isinstance(b, Zero):
        return ZERO  # type: ignore[return-value]
    if stays_placed(a) or stays_placed(b):
        return _matmul_by_places(a, b)
    if isinstance(b, Chunk):
        return _primal_matmul_chunk(a, b)
    lanes, ndim = a.lanes, np.ndim(plain(b))
    if a.ndim == 1:
        product = lanes @ b
        return Chunk(product if ndim == 1 else np.moveaxis(product, -2, 0))
    if ndim > a.ndim:
        lanes = lanes.reshape((a.n,) + (1,) * (ndim - a.ndim) + a.shape)
    return Chunk(np.matmul(lanes, b))


def _matmul_by_places(a: Any, b: Any) -> Chunk:
    """The products of all elements, summed along the axis before the last."""
    of_a, of_b = (len(np.shape(plain(x))) for x in (a, b))
    right = b if of_b > 1 else b[:, None]
    product = a[..., None] * (right[..., None, :, :] if min(of_a, of_b) > 1 else right)
    total = summed(product, (len(product.shape) - 2,), keepdims=False)
    return total if of_b > 1 else total[..., 0]


def _primal_matmul_chunk(a: Any, b: Chunk) -> Chunk:
    lanes, ndim = b.lanes, np.ndim(plain(a))
    if b.ndim == 1:
        if ndim <= 2:
            return Chunk(lanes @ (a.T if ndim == 2 else a))
        return Chunk(np.moveaxis(np.matmul(a, lanes.T), -1, 0))
    if ndim == 1:
        return Chunk(np.matmul(a, lanes))
    if ndim > b.ndim:
        lanes = lanes.reshape((b.n,) + (1,) * (ndim - b.ndim) + b.shape)
    return Chunk(np.matmul(a, lanes))


@law(np.dot)
def _dot(a: Any, b: Any, out: None = None) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if a_ndim == 0 or b_ndim == 0:
        return a * b
    if b_ndim <= 2 and (a_ndim <= 2 or b_ndim == 1):
        return matmul(a, b)
    return _tensordot(a, b, ([a_ndim - 1], [b_ndim - 2]))


@law(np.inner)
def _inner(a: Any, b: Any) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if a_ndim == 0 or b_ndim == 0:
        return a * b
    return _tensordot(a, b, ([a_ndim - 1], [b_ndim - 1]))


@law(np.tensordot)
def _tensordot(a: Any, b: Any, axes: Any = 2) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    if isinstance(axes, (int, np.integer)):
        of_a, of_b = list(range(a_ndim - axes, a_ndim)), list(range(axes))
    else:
        of_a, of_b = ([s] if isinstance(s, (int, np.integer)) else list(s) for s in axes)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXY"
    left = list(letters[:a_ndim])
    right = list(letters[a_ndim : a_ndim + b_ndim])
    for i, j in zip(of_a, of_b, strict=True):
        right[j % b_ndim] = left[i % a_ndim]
    summed = {left[i % a_ndim] for i in of_a}
    free = [x for x in left + right if x not in summed]
    return _einsum(f"{''.join(left)},{''.join(right)}->{''.join(free)}", a, b)


@law(np.einsum)
def _einsum(subscripts: str, *operands: Any, **options: Any) -> Any:
    """Give the lane axis a letter of its own, on the one chunk and on the result."""
    chunks = [k for k, x in enumerate(operands) if isinstance(x, Chunk)]
    if any(isinstance(x, Zero) for x in operands):
        return ZERO
    if len(chunks) != 1:
        raise NonlinearTangentError("einsum of two tangents is not linear")
    spec = subscripts.replace(" ", "")
    inputs, arrow, output = spec.partition("->")
    if not arrow:
        seen = inputs.replace(",", "").replace(".", "")
        output = ("..." if "..." in inputs else "") + "".join(
            sorted(c for c in set(seen) if seen.count(c) == 1)
        )
    terms = inputs.split(",")
    (k,) = chunks
    if stays_placed(operands[k]) and _is_plain(terms):
        return _einsum_by_places(terms, output, operands, k)
    lane = next(c for c in "ZYXWVUTSRQPONMLKJIHGFEDCBAzyxwvutsrqponmlkjihgfedcba" if c not in spec)
    terms[k] = lane + terms[k]
    arrays = [x.lanes if isinstance(x, Chunk) else x for x in operands]
    # Planning costs 20 µs and brings BLAS in: worth it from about 1e5 products on.
    lengths = [*_lengths(terms, arrays).values()]
    planned = is_known(lengths) and math.prod(lengths) > 1e5
    dtype = {} if options.get("dtype") is None else {"dtype": options["dtype"], "casting": "unsafe"}
    return Chunk(
        np.einsum(",".join(terms) + "->" + lane + output, *arrays, optimize=planned, **dtype)
    )


def _is_plain(terms: list[str]) -> bool:
    """Whether each operand of an einsum has letters of its own for its axes."""
    return all("." not in term and len(set(term)) == len(term) for term in terms)


def _einsum_by_places(terms: list[str], output: str, operands: Any, k: int) -> Chunk:
    """The products of all elements, which are added to those of the result."""
    gone = sorted(set("".join(terms)) - set(output))
    letters = [*output, *gone]
    wide = [_along(x, term, letters) for x, term in zip(operands, terms, strict=True)]
    product = wide.pop(k)
    for x in wide:
        product = product * x
    return summed(product, tuple(range(len(output), len(letters))), keepdims=False)


def _along(x: Any, term: str, letters: list[str]) -> Any:
    """An operand with an axis for each letter, of length one where it has none."""
    order = [term.index(c) for c in letters if c in term]
    index = tuple(slice(None) if c in term else None for c in letters)
    return np.transpose(x, order)[index]


def _lengths(terms: list[str], arrays: list[Any]) -> dict[str, int]:
    """The length that each letter of an einsum runs over."""
    lengths: dict[str, int] = {}
    for term, array in zip(terms, arrays, strict=True):
        shape = np.shape(plain(array))
        before, dots, after = term.partition("...")
        labels = [
            *before,
            *(["..."] * (len(shape) - len(before) - len(after)) if dots else []),
            *after,
        ]
        for label, length in zip(labels, shape, strict=True):
            longest = lengths.get(label, 1)
            lengths[label] = max(length, longest) if is_known(length, longest) else length
    return lengths


@law(np.outer)
def _outer(a: Any, b: Any, out: None = None) -> Chunk:
    a = a.reshape(-1) if isinstance(a, Chunk) else np.ravel(a)
    b = b.reshape(-1) if isinstance(b, Chunk) else np.ravel(b)
    return a[:, None] * b[None, :]


@law(np.kron)
def _kron(a: Any, b: Any) -> Chunk:
    a_ndim, b_ndim = (t.ndim if isinstance(t, Chunk) else np.ndim(plain(t)) for t in (a, b))
    ndim = max(a_ndim, b_ndim)
    a_shape = (1,) * (ndim - a_ndim) + tuple(np.shape(a) if not isinstance(a, Chunk) else a.shape)
    b_shape = (1,) * (ndim - b_ndim) + tuple(np.shape(b) if not isinstance(b, Chunk) else b.shape)
    left = tuple(s for n in a_shape for s in (n, 1))
    right = tuple(s for n in b_shape for s in (1, n))
    a = a.reshape(left) if isinstance(a, Chunk) else np.reshape(a, left)
    b = b.reshape(right) if isinstance(b, Chunk) else np.reshape(b, right)
    return (a * b).reshape(tuple(m * n for m, n in zip(a_shape, b_shape, strict=True)))


@law(np.linalg.solve)
def _solve(a: Any, b: Chunk) -> Chunk:
    """Solve for all lanes at once: the lanes become columns, so that a is factorised once."""
    if isinstance(a, Chunk):
        message = "numpy.linalg.solve is linear in b, not in a, but a is a tangent"
        raise NonlinearTangentError(message)
    a_ndim = np.ndim(plain(a))
    if b.ndim == 1:
        columns = np.moveaxis(b.lanes, 0, -1)
        if a_ndim > 2:
            columns = np.broadcast_to(columns, (*np.shape(a)[:-2], *columns.shape))
        return Chunk(np.moveaxis(np.linalg.solve(a, columns), -1, 0))
    m = b.shape[-1]
    columns = np.moveaxis(b.lanes, 0, -1)
    columns = columns.reshape((*b.shape[:-1], m * b.n))
    x = np.linalg.solve(a, columns)
    return Chunk(np.moveaxis(x.reshape((*x.shape[:-1], m, b.n)), -1, 0))
