"""``autograd.misc.flatten``: one vector of all numbers of a structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fwdad.compat.conventions import in_order
from fwdad.evaluation.trees import ravel


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """The numbers of a structure as a vector, and the function that takes it back.

    Parameters
    ----------
    value : object
        Numbers, arrays, and tuples, lists and dicts of them. Keys are sorted, as by autograd.

    Returns
    -------
    vector : ndarray
        See :func:`fwdad.ravel`.
    unflatten : callable
        The structure with the numbers of a vector.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.autograd.misc import flatten
    >>> vector, unflatten = flatten({"b": [1.0, np.ones(2)], "a": (3.0,)})
    >>> vector
    array([3., 1., 1., 1.])
    """
    return ravel(in_order(value))


def flatten_func(func: Callable[..., Any], example: Any) -> Any:
    """A function of a structure as one of vectors.

    Parameters
    ----------
    func : callable
        ``func(value, *args)`` returns a structure.
    example : object
        Such a value.

    Returns
    -------
    tuple
        The function of vectors, ``unflatten``, and the example as a vector.
    """
    vector, unflatten = flatten(example)

    def flat(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return flat, unflatten, vector
