"""``jacobian``: by rows or by columns, whichever is asked for or pays."""

from __future__ import annotations

from typing import Any

from fwdad.core.fallbacks import Untraced
from fwdad.core.tracebacks import public
from fwdad.drivers.jacobian_rows import rows_pay, value_and_rows
from fwdad.drivers.strategy import Candidate, first_that_can
from fwdad.errors import UnsupportedTypeError
from fwdad.evaluation.arguments import (
    Argnums,
    Function,
    argument_numbers,
    arguments_of,
    check_holomorphic,
    check_mode,
)
from fwdad.evaluation.evaluators import value_and_columns
from fwdad.frontend.calls.tables import builtin
from fwdad.frontend.derivatives.evaluators import traced_jacobian, traced_value_and_jacobian


@public
def value_and_jacobian(
    f: Function,
    x: Any,
    *,
    chunk: int | str | None = "auto",
    mode: str = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Any:
    """The value of a function and its Jacobian, from the same runs.

    Parameters
    ----------
    f, x, chunk, mode, argnums, args, kwargs, has_aux, outputs, holomorphic, stack
        See :func:`jacobian`.

    Returns
    -------
    y : object
        ``f(x)``.
    J : array or composite
        See :func:`jacobian`. With ``has_aux``, aux is a third result.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jacobian`.
    """
    check_mode(mode)
    arguments, single = arguments_of(f, x, args, kwargs, argnums)
    check_holomorphic(f, arguments, holomorphic, has_aux=has_aux, outputs=outputs)
    argnums = argument_numbers(argnums)
    common: Any = {"chunk": chunk, "has_aux": has_aux, "outputs": outputs, "stack": stack}

    def by_rows() -> Any:
        if holomorphic:
            return Untraced(f, reason="a holomorphic function is differentiated by columns")
        if mode == "forward":
            return Untraced(f, reason='mode="forward" was asked for')
        if mode == "auto":
            options = {"has_aux": has_aux, "outputs": outputs}
            not_worth = rows_pay(f, arguments, argnums, options)
            if not_worth is not None:
                return not_worth
        return value_and_rows(f, x, argnums=argnums, args=args, kwargs=kwargs, **common)

    def by_columns() -> Any:
        return value_and_columns(f, arguments, single=single, **common)

    return first_that_can(
        "jacobian", f, Candidate("rows", by_rows), Candidate("columns", by_columns)
    )


@public
def jacobian(
    f: Function,
    x: Any = None,
    *,
    chunk: int | str | None = "auto",
    mode: str = "auto",
    argnums: Argnums = 0,
    args: tuple[Any, ...] = (),
    kwargs: dict[str, Any] | None = None,
    has_aux: bool = False,
    outputs: str = "returned",
    holomorphic: bool = False,
    stack: bool = False,
) -> Any:
    """The Jacobian of a function at a point: exact, N columns at a time.

    Parameters
    ----------
    f : callable
        ``f(x, *args, **kwargs)``; any NumPy program.
    x : float, complex, array or composite
        Where.
    chunk : int, "auto" or None, default "auto"
        Columns per run of f: a number, all at once (None), or as many as keep the lanes of one
        array of x's size near the cache, and at least eight.
    mode : {"auto", "forward", "reverse"}
        By columns, or by rows. ``"auto"`` takes rows where x has more than 64 numbers and at least
        four times as many as y, and f can be traced. ``chunk`` is then the number of rows. With
        ``holomorphic`` it is by columns, whatever the mode.
    argnums, args, kwargs, has_aux, outputs, holomorphic
        See :func:`jvp`.
    stack : bool, default False
        Make one matrix ``(total size of y, total size of x)`` out of composites or several
        argnums, as SciPy wants.

    Returns
    -------
    array or composite
        ``y.shape + x.shape`` for arrays; for composites y's structure, and x's inside it. With
        ``has_aux`` a tuple of this and aux.

    Raises
    ------
    MissingRuleError, UnsupportedTypeError
        See :func:`jvp`.

    Notes
    -----
    Costs a run of f on duals for each chunk of columns; by rows one run of f, and a reverse pass
    for each chunk of rows. At kinks see :func:`jvp`.

    The three layouts, for x of shape ``(3,)`` and y of shape ``(2,)``:

    ===================  ===============================  =============
    directions           ``v``, stacked in front          ``(K, 3)``
    ``jvp``'s ``y_dot``  the same axis in front           ``(K, 2)``
    ``jacobian``         directions trail, as x's shape   ``(2, 3)``
    ===================  ===============================  =============

    With every basis direction ``J = numpy.moveaxis(y_dot, 0, -1)``.

    Examples
    --------
    >>> import numpy as np
    >>> jacobian(lambda x: np.array([x[0] * x[1], x[1] ** 2]), np.array([3.0, 4.0]))
    array([[4., 3.],
           [0., 8.]])
    """
    if x is None:
        raise UnsupportedTypeError(
            "jacobian(f) needs a point, jacobian(f, x); for the Jacobian as a function, use "
            "jacfwd(f)"
        )
    result = value_and_jacobian(
        f,
        x,
        chunk=chunk,
        mode=mode,
        argnums=argnums,
        args=args,
        kwargs=kwargs,
        has_aux=has_aux,
        outputs=outputs,
        holomorphic=holomorphic,
        stack=stack,
    )
    return result[1:] if has_aux else result[1]


builtin(value_and_jacobian)(traced_value_and_jacobian)
builtin(jacobian)(traced_jacobian)
