"""``autograd.test_util``: derivatives beside finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fwdad.api.check_grads import check_grads as check_at
from fwdad.eager.arguments import copied
from fwdad.evaluation.arguments import positions_of
from fwdad.evaluation.signatures import Argnums


def check_grads(
    f: Callable[..., Any],
    argnum: Argnums = 0,
    modes: Sequence[str] = ("fwd", "rev"),
    order: int = 2,
) -> Callable[..., None]:
    """Make a function that checks the derivatives of f at its arguments.

    Parameters
    ----------
    f : callable
        Smooth around the arguments.
    argnum : int or tuple of int, default 0
        The positional arguments whose derivatives are checked.
    modes, order
        See :func:`fwdad.check_grads`.

    Returns
    -------
    callable
        With f's signature; it raises AssertionError if a derivative is off.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat.autograd.test_util import check_grads
    >>> check_grads(lambda x, n: np.sin(x) ** n)(np.ones(2), 3)
    """

    def check(*args: Any, **kwargs: Any) -> None:
        several = argnum if isinstance(argnum, (tuple, list)) else (argnum,)
        numbers = positions_of(several, len(args))

        def of_these(*some: Any) -> Any:
            every = list(args)
            for k, x in zip(numbers, some, strict=True):
                every[k] = x
            return f(*every, **kwargs)

        # one array as two arguments is two arguments to autograd
        check_at(of_these, tuple([copied(args[k]) for k in numbers]), order, tuple(modes))

    return check
