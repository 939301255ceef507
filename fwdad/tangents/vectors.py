"""Tangents of composites as vectors: zero, sum, multiple and inner product, pushed to the leaves.

A leaf that is shared is one leaf: it is added, scaled and counted once. A container that holds
itself ends there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.errors import ChunkMismatchError, type_in_words
from fwdad.tangents.chunk import Chunk
from fwdad.tangents.composite import flatten, is_leaf, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN, REGISTERED, OwnTangents, forget
from fwdad.tangents.seeds import leaf_dtype, leaf_shape
from fwdad.tangents.zero import NoTangent, Undefined, Zero

_INNER: dict[type, Callable[[Any, Any], float]] = {}


def register_own(cls: type, operations: OwnTangents) -> None:
    """Enter a class whose tangents have a class of their own."""
    REGISTERED.pop(cls, None)
    OWN[cls] = operations
    forget()
    _INNER[operations.tangent] = operations.inner


def tangent_space_of(x: Any) -> type | None:
    """``Chunk`` for a leaf, the tangent class of a class that has its own, None otherwise."""
    if type(x) in OWN:
        return OWN[type(x)].tangent
    return Chunk if is_leaf(x) else None


def zero_tangent(x: Any, n: int) -> Any:
    """The N zero tangents of a value, written out.

    Parameters
    ----------
    x : object
        A number, an array or a composite.
    n : int
        The number of lanes.

    Returns
    -------
    like x
        With a ``Chunk`` of zeros at each leaf, and ``NoTangent`` where there is no tangent space.

    Examples
    --------
    >>> zero_tangent({"rate": 2.0, "steps": 10}, 3)
    {'rate': Chunk(3 lanes of shape ()), 'steps': NoTangent}
    """
    leaves, structure = flatten(x, strict=True, leaf=lambda v: tangent_space_of(v) is not None)
    return unflatten(structure, [_zeros(leaf, n) for leaf in leaves], lambda _: NoTangent)


def _zeros(x: Any, n: int) -> Chunk:
    if type(x) in OWN:
        return chunk_of([OWN[type(x)].zero(x) for _ in range(n)])
    return Chunk(np.zeros((n, *leaf_shape(x)), leaf_dtype(plain(x))))


def chunk_of(tangents: list[Any]) -> Chunk:
    """A chunk of tangents that have a class of their own, kept as an array of objects."""
    lanes = np.empty(len(tangents), object)
    for k, tangent in enumerate(tangents):
        lanes[k] = tangent
    return Chunk(lanes)


def _is_tangent(t: Any) -> bool:
    return isinstance(t, (Chunk, Zero, Undefined)) or type(t) in _INNER or is_leaf(t)


def _paired(a: Any, b: Any) -> tuple[list[Any], list[Any], Any]:
    leaves, structure = flatten(a, leaf=_is_tangent)
    return leaves, match(structure, b, path="the first", what="second tangent"), structure


def add_tangents(a: Any, b: Any) -> Any:
    """The sum of two tangents of one value.

    Parameters
    ----------
    a, b : composite of Chunk, ZERO, NoTangent, arrays or numbers
        Of one structure; ``ZERO`` may stand for a whole composite.

    Returns
    -------
    like a

    Raises
    ------
    SeedError, ChunkMismatchError
        If the structures differ, or widths or shapes do.
    """
    if isinstance(a, Zero) or isinstance(b, Zero):
        return b if isinstance(a, Zero) else a
    if a is None or b is None:
        raise ChunkMismatchError("add_tangents takes two tangents of one value; got None: use ZERO")
    first, second, structure = _paired(a, b)
    return unflatten(structure, [_sum(p, q) for p, q in zip(first, second, strict=True)])


def _sum(p: Any, q: Any) -> Any:
    """The sum of two tangents of one leaf: they have one shape."""
    absorbing = (Zero, Undefined)
    if not isinstance(p, absorbing) and not isinstance(q, absorbing) and type(p) not in _INNER:
        shapes = [tuple(t.shape) if isinstance(t, Chunk) else np.shape(plain(t)) for t in (p, q)]
        if q is None or isinstance(p, Chunk) != isinstance(q, Chunk) or shapes[0] != shapes[1]:
            words = [repr(t) if isinstance(t, Chunk) else type_in_words(t) for t in (p, q)]
            raise ChunkMismatchError(
                f"the terms of a sum must be tangents of one value: {words[0]} and {words[1]} "
                f"have the shapes {shapes[0]} and {shapes[1]}"
            )
    return p + q


def scale_tangent(factor: Any, a: Any) -> Any:
    """The product of a number and a tangent.

    Parameters
    ----------
    factor : float or complex
        The number.
    a : composite of Chunk, ZERO, NoTangent, arrays or numbers
        The tangent.

    Returns
    -------
    like a
    """
    leaves, structure = flatten(a, leaf=_is_tangent)
    return unflatten(structure, [t * factor for t in leaves])


def inner_product(a: Any, b: Any) -> Any:
    """The real inner product of two tangents of one value, ``Re <a, b>``, lane by lane.

    Parameters
    ----------
    a, b : composite of Chunk, ZERO, NoTangent, arrays or numbers
        Of one structure.

    Returns
    -------
    ndarray, shape (N,), or float
        A float for tangents that are arrays or numbers, which have no lanes.

    Raises
    ------
    SeedError, ChunkMismatchError
        If the structures differ, or widths or shapes do.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([1.0, 2.0])
    >>> inner_product((x, 3.0), (x, 3.0))
    14.0
    """
    if isinstance(a, Zero) or isinstance(b, Zero):
        return 0.0
    first, second, _ = _paired(a, b)
    total: Any = 0.0
    for p, q in zip(first, second, strict=True):
        if not isinstance(p, Zero) and not isinstance(q, Zero):
            total = total + _inner(p, q)
    return total


def _inner(p: Any, q: Any) -> Any:
    if isinstance(p, Undefined):
        p.use()
    if isinstance(q, Undefined):
        q.use()
    if isinstance(p, Chunk) != isinstance(q, Chunk):
        raise ChunkMismatchError(
            f"an inner product needs two tangents of one value; got {type_in_words(p)} and "
            f"{type_in_words(q)}"
        )
    if not isinstance(p, Chunk):
        if type(p) in _INNER:
            return _INNER[type(p)](p, q)
        if np.shape(p) != np.shape(q):
            raise ChunkMismatchError(
                f"an inner product needs two tangents of one value; got the shapes {np.shape(p)} "
                f"and {np.shape(q)}"
            )
        return float(np.real(np.vdot(np.asarray(p), np.asarray(q))))
    if (p.n, p.shape) != (q.n, q.shape):
        message = f"an inner product needs two tangents of one value; got {p!r} and {q!r}"
        raise ChunkMismatchError(message)
    if p.dtype.kind == "O":
        return np.array([_INNER[type(t)](t, u) for t, u in zip(p.lanes, q.lanes, strict=True)])
    product = np.conjugate(p.lanes) * q.lanes
    return np.real(np.sum(product.reshape(p.n, -1), axis=1))
