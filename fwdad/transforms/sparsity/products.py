"""The structure of products of arrays, and of sums at places: products and sums of elements."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fwdad.tangents.sparse import coordinates, scatter_add, sparse_product
from fwdad.transforms.sparsity.structures import MOST_PRODUCTS, Call, NotOfThisKind, structure


@structure(np.matmul, np.dot, np.inner, np.vdot, np.linalg.matmul)
def _matmul(call: Call) -> Any:
    """Sums of products, along the last axis of the first array."""
    a, b = (np.asarray(call.nodes(x)) for x in call.args[:2])
    f = call.function
    if {"axes", "axis"} & call.kwargs.keys():
        raise NotOfThisKind
    if f is np.vdot:
        a, b = a.ravel(), b.ravel()
    if a.ndim == 0 or b.ndim == 0:
        return call.elementwise(list(call.args[:2]), linear=False, cross=True)
    if max(a.ndim, b.ndim) > 2 and f is not np.matmul:
        raise NotOfThisKind
    rows = a if a.ndim > 1 else a[None]
    columns = b[:, None] if b.ndim == 1 else b
    columns = b.reshape(-1, b.shape[-1]).T if f is np.inner else columns
    products = [rows[..., :, :, None], columns[..., None, :, :]]
    return _summed(call, products, -2).reshape(call.shape)


def _summed(call: Call, factors: list[Any], axis: int) -> Any:
    """The sums along an axis of products of arrays that are broadcast."""
    graph = call.graph
    shape = np.broadcast_shapes(*[x.shape for x in factors])
    factors = [x.reshape((1,) * (len(shape) - x.ndim) + x.shape) for x in factors]
    active = [x for x in factors if np.any(x)]
    axis %= len(shape)
    if graph.pairs and len(active) > 1:
        if math.prod(shape) > MOST_PRODUCTS:
            raise NotOfThisKind
        made = graph.union(active, shape, new=True)
        graph.join(made, active[0], active[1])
        return graph.over(made, (axis,))
    # what a sum of products depends on is what the sums of the factors do
    sums = [graph.over(x, (axis,)) for x in factors]
    return graph.union(sums, tuple(1 if k == axis else n for k, n in enumerate(shape)))


@structure(np.einsum)
def _einsum(call: Call) -> Any:
    subscripts, *operands = call.args
    if not isinstance(subscripts, str):
        raise NotOfThisKind
    terms, arrow, kept = subscripts.replace(" ", "").partition("->")
    if not arrow or not (terms.replace(",", "") + kept).isalpha():
        raise NotOfThisKind
    if set(call.kwargs) - {"optimize"}:
        raise NotOfThisKind
    letters = kept + "".join(sorted({c for c in terms if c.isalpha()} - set(kept)))
    factors = []
    for term, operand in zip(terms.split(","), operands, strict=True):
        own = "".join(dict.fromkeys(term))
        nodes = (
            np.einsum(f"{term}->{own}", np.asarray(call.nodes(operand)))
            if own != term
            else (np.asarray(call.nodes(operand)))
        )
        order = [own.index(c) for c in letters if c in own]
        shape = [nodes.shape[own.index(c)] if c in own else 1 for c in letters]
        factors.append(nodes.transpose(order).reshape(shape))
    if len([x for x in factors if np.any(x)]) > 2 and call.graph.pairs:
        raise NotOfThisKind
    summed = tuple(range(len(kept), len(letters)))
    if not summed:
        return _summed(call, [x[..., None] for x in factors], -1).reshape(call.shape)
    wide = np.broadcast_shapes(*[x.shape for x in factors])
    active = [x for x in factors if np.any(x)]
    if call.graph.pairs and len(active) > 1:
        flat = [np.broadcast_to(x, wide).reshape(*wide[: len(kept)], -1) for x in active]
        return _summed(call, flat, -1).reshape(call.shape)
    sums = [call.graph.over(x, summed) for x in factors]
    each = tuple(1 if k in summed else n for k, n in enumerate(wide))
    return call.graph.union(sums, each).reshape(call.shape)


@structure(scatter_add)
def _scattered(call: Call) -> Any:
    values, places, size = call.args
    into = np.zeros(call.value(size), np.int64)
    call.graph.scattered(call.value(places), call.nodes(values), into)
    return into


@structure(np.bincount)
def _counted(call: Call) -> Any:
    places, weights = call.bound("x", "weights")
    into = np.zeros(call.shape, np.int64)
    call.graph.scattered(call.value(places), call.nodes(weights), into)
    return into


@structure(sparse_product)
def _sparse_product(call: Call) -> Any:
    data, x, layout, major, minor, shape = call.bound(
        "data", "x", "layout", "major", "minor", "shape"
    )
    i, j = coordinates(call.value(layout), call.value(major), call.value(minor))
    x = np.asarray(call.nodes(x)).reshape(call.value(shape)[1], -1)
    data = np.asarray(call.nodes(data))[:, None]
    factors, wide = [data, x[j]], (len(i), x.shape[1])
    both = bool(call.graph.pairs and np.any(data) and np.any(x))
    terms = call.graph.union(factors, wide, new=both)
    if both:
        call.graph.join(terms, data, x[j])
    into = np.zeros(call.value(shape)[0] * x.shape[1], np.int64)
    places = np.asarray(i)[:, None] * x.shape[1] + np.arange(x.shape[1])
    call.graph.scattered(places, terms, into)
    return into.reshape(call.shape)
