"""``jax.flatten_util``: one vector of all numbers of a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.compat.conventions import in_order
from fwdad.evaluation.trees import ravel


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a structure as a vector, and the function that takes it back.

    Parameters
    ----------
    pytree : object
        Numbers, arrays, and tuples, lists and dicts of them. Keys are sorted, as by JAX. Ints,
        which JAX makes part of the vector, are not in it.

    Returns
    -------
    vector : ndarray
        See :func:`fwdad.ravel`.
    unravel : callable
        The structure with the numbers of a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.jax.flatten_util import ravel_pytree
    >>> vector, unravel = ravel_pytree({"b": np.ones(2), "a": 3.0})
    >>> vector, unravel(2 * vector)["b"]
    (array([3., 1., 1.]), array([2., 2.]))
    """
    return ravel(in_order(pytree))
