"""Functions of whole structures: ``tree_map``, and ``ravel``, which makes one vector of a tree."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.core.tracebacks import public
from fwdad.eager.arguments import explicit_leaves
from fwdad.eager.calls.dispatch import call
from fwdad.eager.duals.tags import isinstance_dual
from fwdad.errors import SeedError, UnsupportedTypeError, type_in_words
from fwdad.tangents.composite import flatten, unflatten
from fwdad.tangents.matching import match
from fwdad.tangents.plain import plain
from fwdad.tangents.registrations import OWN
from fwdad.tangents.seeds import leaf_dtype, leaf_shape


@public
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to every number and array of a structure.

    Parameters
    ----------
    f : callable
        ``f(x)``, or ``f(x, *others)`` with the parts of the other structures at the same place.
    tree : object
        Anything that fwdad differentiates: a number, an array, a sparse array, or tuples, lists,
        dicts, dataclasses and objects of these, to any depth.
    *rest : like tree
        Others of the same structure, such as a gradient.

    Returns
    -------
    like tree
        With f's results in place of the numbers and arrays. What has no tangent space (ints,
        strings, None, constant fields) stays as it is in ``tree``. Objects are new ones, made
        without ``__init__``. An array in two places is one: f is called once for it.

    Raises
    ------
    SeedError
        If a structure differs from the first one: the message names the place.
    UnsupportedTypeError
        If f is no function.

    Notes
    -----
    Unlike JAX's function of this name, it leaves ints alone: they have no derivative, and the
    gradient has ``NoTangent`` in their place. It can be differentiated and compiled.

    Examples
    --------
    A step of gradient descent:

    >>> import numpy as np
    >>> params = {"w": np.array([1.0, 2.0]), "b": 0.5, "epoch": 3}
    >>> slope = {"w": np.array([10.0, 20.0]), "b": 1.0, "epoch": None}
    >>> tree_map(lambda p, g: p - 0.01 * g, params, slope)
    {'w': array([0.9, 1.8]), 'b': 0.49, 'epoch': 3}
    """
    if not callable(f):
        raise UnsupportedTypeError(f"tree_map takes a function first; got {type_in_words(f)}")
    leaves, structure = flatten(explicit_leaves(tree))
    columns = [leaves]
    for k, other in enumerate(rest):
        columns.append(match(structure, explicit_leaves(other), "tree", nth_tree(k)))
    return unflatten(structure, [call(f, *row) for row in zip(*columns, strict=True)])


def nth_tree(k: int) -> str:
    """The name of a further structure in messages."""
    return f"{('second', 'third')[k]} tree" if k < 2 else f"tree number {k + 2}"


@public
def ravel(tree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """One vector of all numbers of a structure, and the function that takes it back.

    Parameters
    ----------
    tree : object
        Anything that fwdad differentiates: a number, an array, or tuples, lists, dicts, dataclasses
        and objects of these, to any depth.

    Returns
    -------
    vector : ndarray, shape (n,)
        A copy of the numbers, array after array in C order, in the order of the Jacobian's columns.
        Its dtype is that to which NumPy promotes all of them.
    unravel : callable
        ``unravel(vector)`` is a structure like ``tree`` with the vector's numbers, in memory of its
        own. Where all parts have one dtype, they get that of the vector (complex numbers for a
        complex step), else each its own. What has no tangent space (ints, strings, None, constant
        fields) is that of ``tree``.

    Raises
    ------
    UnsupportedTypeError
        If there is a part without entries: the instance of a class whose tangents have a class of
        their own.
    SeedError
        By ``unravel``, for a vector of another length, rank or dtype.

    Notes
    -----
    Both can be differentiated and compiled. An array in two places is in the vector once. The dtype
    rules are those of ``jax.flatten_util.ravel_pytree``; ints, which JAX makes part of the vector,
    are not in it.

    Examples
    --------
    A dict of parameters for an optimiser that wants a vector:

    >>> import numpy as np
    >>> from scipy.optimize import minimize
    >>> import fwdad
    >>> def loss(params):
    ...     return np.sum((params["w"] - [3.0, 5.0]) ** 2) + (params["b"] + 1.0) ** 2
    >>> vector, unravel = fwdad.ravel({"w": np.zeros(2), "b": 0.0})
    >>> fun = fwdad.value_and_grad(lambda v: loss(unravel(v)))
    >>> found = unravel(minimize(fun, vector, jac=True).x)
    >>> found["w"].round(6), round(float(found["b"]), 6)
    (array([3., 5.]), -1.0)
    """
    leaves, structure = flatten(explicit_leaves(tree), strict=True)
    if any(type(plain(leaf)) in OWN for leaf in leaves):
        message = "ravel needs numbers and arrays; got an instance of a class with tangents of its "
        raise UnsupportedTypeError(f"{message}own, which has no entries")
    shapes = [leaf_shape(leaf) for leaf in leaves]
    dtypes = [leaf_dtype(plain(leaf)) for leaf in leaves]
    like = [
        np.broadcast_to(np.zeros((), dtype), s) for s, dtype in zip(shapes, dtypes, strict=True)
    ]
    unravel = Unravel(unflatten(structure, like), shapes, dtypes)
    parts = [_flat(leaf, unravel.dtype) for leaf in leaves]
    return (call(np.concatenate, parts) if parts else np.zeros(0)), unravel


def _flat(leaf: Any, dtype: np.dtype[Any]) -> Any:
    flat = call(np.reshape, leaf, (-1,))
    return flat if leaf_dtype(plain(flat)) == dtype else call(np.ndarray.astype, flat, dtype)


class Unravel:
    """Takes a vector apart into a structure; made by :func:`ravel`.

    ``example`` is such a structure, whose arrays take no memory.
    """

    def __init__(
        self, example: Any, shapes: list[tuple[int, ...]], dtypes: list[np.dtype[Any]]
    ) -> None:
        self.example = example
        self.shapes = shapes
        self.dtypes = dtypes
        self.dtype = np.result_type(*dtypes) if dtypes else np.dtype(float)
        self.mixed = any(dtype != self.dtype for dtype in dtypes)
        self.sizes = [math.prod(shape) for shape in shapes]
        self.count = sum(self.sizes)

    def __repr__(self) -> str:
        return f"<unravel: ({self.count},) to {type_in_words(self.example)}>"

    def __call__(self, vector: Any) -> Any:
        """The structure with the numbers of a vector."""
        if not isinstance_dual(vector):
            vector = np.asarray(vector)
        self.check(np.shape(plain(vector)), leaf_dtype(plain(vector)))
        _, structure = flatten(self.example)
        return unflatten(structure, self.parts(call, vector))

    def parts(self, apply: Callable[..., Any], vector: Any) -> list[Any]:
        """The leaves, in memory of their own, by calls ``apply(function, *args)``."""
        found, start = [], 0
        for shape, size, dtype in zip(self.shapes, self.sizes, self.dtypes, strict=True):
            part = apply(operator.getitem, vector, slice(start, start + size))
            start += size
            if self.mixed and dtype != self.dtype:
                part = part if dtype.kind == "c" else apply(np.real, part)
                part = apply(np.ndarray.astype, part, dtype)
            else:
                part = apply(np.ndarray.copy, part)
            found.append(
                apply(np.reshape, part, shape) if shape else apply(operator.getitem, part, 0)
            )
        return found

    def check(self, shape: tuple[Any, ...], dtype: np.dtype[Any]) -> None:
        """Raise for a vector that does not fit, as far as its shape and dtype are known."""
        if len(shape) != 1 or (isinstance(shape[0], int) and shape[0] != self.count):
            message = f"unravel takes a vector of shape ({self.count},); got the shape {shape}"
            raise SeedError(message)
        if dtype.kind not in "fc" or (self.mixed and dtype != self.dtype):
            wanted = f"dtype {self.dtype}" if self.mixed else "floats or complex numbers"
            raise SeedError(f"unravel takes a vector of {wanted}; got dtype {dtype}")
