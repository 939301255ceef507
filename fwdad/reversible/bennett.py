"""Bennett's scheme: a reversible program that iterates an irreversible step in little memory.

C. H. Bennett, "Time/space trade-offs for reversible computation", SIAM J. Comput. 18 (1989)
766-776, doi:10.1137/0218053.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.reversible.function import Reversible, reversible
from fwdad.reversible.language.keywords import ancilla, compute, copy_out


def bennett(step: Callable[..., Any], k: int = 2) -> Reversible:
    """Make a reversible function that iterates an irreversible step.

    Parameters
    ----------
    step : callable
        ``step(x)`` returns the next state, of x's shape; or a reversible function ``step(y, x)``
        that adds it to y.
    k : int, default 2
        Into how many parts a run is divided, and each part again, down to single steps.

    Returns
    -------
    Reversible
        ``f(y, x, n)`` adds to ``y`` the state n steps after ``x``.

    Raises
    ------
    ValueError
        If k is less than 2; when it is called, if n is negative.

    Notes
    -----
    Running forward costs n steps. For a gradient, or where the inverse has to run, each level of
    the division is run again before it is undone: at most ``2 k - 1`` parts where the run has k, so
    about ``n ** (log(2 k - 1) / log(k))`` steps, with ``k * log(n) / log(k)`` states in memory
    besides their cotangents. A larger k is faster and needs more memory.

    Examples
    --------
    >>> import fwdad
    >>> from fwdad.reversible import bennett
    >>> logistic = bennett(lambda x: 3.6 * x * (1 - x), k=4)
    >>> slope = fwdad.grad(logistic, argnums=1)(0.0, 0.3, 20)
    """
    if k < 2:
        message = f"a run is divided into at least 2 parts; got k = {k}"
        raise ValueError(message)
    advance = step if isinstance(step, Reversible) else _added(step)

    @reversible
    def iterated(y, x, n):  # type: ignore[no-untyped-def]
        if _is_step(n):
            _iterate(y, x, advance, n, k)
        else:
            y += x

    function: Reversible = iterated
    return function


def _is_step(n: Any) -> bool:
    """Whether there is a step."""
    if n < 0:
        message = f"a step is iterated 0 times or more; got n = {n}"
        raise ValueError(message)
    return bool(n > 0)


def _added(step: Callable[..., Any]) -> Reversible:
    @reversible
    def advance(y, x):  # type: ignore[no-untyped-def]
        y += step(x)

    function: Reversible = advance
    return function


@reversible
def _iterate(y, x, advance, n, k):  # type: ignore[no-untyped-def]
    if n == 1:
        advance(y, x)
    else:
        part = (n + k - 1) // k
        parts = (n + part - 1) // part
        with compute():
            states = ancilla(np.zeros((parts, *np.shape(x)), np.result_type(x)))
            states[0] += x
            for j in range(parts - 1):
                _iterate(states[j + 1], states[j], advance, part, k)
            with copy_out():
                _iterate(y, states[parts - 1], advance, n - part * (parts - 1), k)
