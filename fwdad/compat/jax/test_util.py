"""``jax.test_util``: derivatives beside finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fwdad.api.check_grads import check_grads as check_at
from fwdad.eager.arguments import copied


def check_grads(
    f: Callable[..., Any],
    args: Any,
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Check the derivatives of f at some arguments.

    Parameters
    ----------
    f, args, order, modes
        See :func:`fwdad.check_grads`.
    atol, rtol : float, optional
        See there.
    eps : float, optional
        Taken, and without effect: steps are chosen by their own error estimate.

    Raises
    ------
    AssertionError
        If a derivative is off.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.jax.test_util import check_grads
    >>> check_grads(np.sin, (np.ones(2),), order=2)
    """
    args = args if isinstance(args, tuple) else (args,)
    args = tuple([copied(x) for x in args])  # one array as two arguments is two arguments to JAX
    check_at(f, args, order, modes, rtol=rtol, atol=0.0 if atol is None else atol)
