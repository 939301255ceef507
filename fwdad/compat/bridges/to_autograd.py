"""``to_autograd``: a function of fwdad's as one of autograd's."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.compat.bridges.functions import (
    Arguments,
    Layout,
    check_function,
    peer,
    pulled,
    pushed,
)
from fwdad.drivers.pullback import vjp


def to_autograd(f: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function that autograd differentiates of one that it could not.

    Parameters
    ----------
    f : callable
        ``f(*args)``, any NumPy program. Its arguments and its value are arrays, numbers, or tuples,
        lists, dicts and dataclasses of these.

    Returns
    -------
    callable
        With f's signature, for positional arguments: one of autograd's primitives, with its
        derivatives in both modes.

    Raises
    ------
    ImportError
        If autograd is not installed.
    UnsupportedTypeError
        If f is no function; when it is called with numbers of other types than float32 and float64.

    Notes
    -----
    Derivatives are bridged themselves, so that they have derivatives of any order; each of these
    runs f again.

    Examples
    --------
    >>> import numpy as np
    >>> from fwdad.compat import to_autograd
    >>> def burgers(u):
    ...     u = u.copy()
    ...     u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    ...     return u
    >>> step = to_autograd(burgers)  # doctest: +SKIP
    >>> autograd.jacobian(step)(np.linspace(0.0, 1.0, 8))  # doctest: +SKIP
    """
    check_function(f, "to_autograd")
    extend = peer("autograd.extend", "autograd")

    def is_array(x: Any) -> bool:
        return isinstance(x, extend.Box) or _is_inexact(x)

    def dtype(x: Any) -> Any:
        while isinstance(x, extend.Box):
            x = x._value  # noqa: SLF001  (autograd has no other way)
        return np.result_type(x)

    @functools.wraps(f)
    def bridged(*args: Any) -> Any:
        call = _Call(f, Arguments(_opened(args), is_array, dtype))
        if not any(isinstance(x, extend.Box) for x in call.arguments.arrays):
            return f(*args)
        found = call.primitive(extend)(*call.arguments.arrays)
        return call.value([found[k] for k in range(len(call.value.arrays))])

    return bridged


class _Call:
    """One call of f; after it, where the arrays of the value stand."""

    def __init__(self, f: Callable[..., Any], arguments: Arguments) -> None:
        self.f = f
        self.arguments = arguments
        self.pullback: Any = None
        self.value: Any = None

    def primitive(self, extend: Any) -> Any:
        """The call as one of autograd's primitives, which returns a tuple of arrays."""
        make_tuple = peer("autograd.builtins", "autograd").tuple

        @extend.primitive
        def run(*arrays: Any) -> Any:
            args, argnums = self.arguments(arrays), self.arguments.argnums
            y, self.pullback = vjp(self.f, args[0], args=args[1:], argnums=argnums)
            self.value = Layout(y, _is_inexact)
            return tuple(self.value.arrays)

        def pulls(argnums: Any, ans: Any, arrays: Any, kwargs: Any) -> Any:
            def pull(bars: Any) -> Any:
                y_bar = self.value.tangent([bars[k] for k in range(len(ans))])
                given = (*arrays, bars, *[bars[k] for k in range(len(ans))])
                if any(isinstance(x, extend.Box) for x in given):
                    backward = to_autograd(pulled(self.f, self.arguments.argnums))
                    trees = backward(y_bar, *self.arguments(arrays))
                else:
                    trees = self.pullback(y_bar)
                found = self.arguments.cotangents(trees)
                return tuple([found[k] for k in argnums])

            return pull

        def pushes(argnums: Any, dots: Any, _ans: Any, arrays: Any, kwargs: Any) -> Any:
            given = dict(zip(argnums, dots, strict=True))
            every = [given.get(k, np.zeros(np.shape(x))) for k, x in enumerate(arrays)]
            forward = to_autograd(pushed(self.f, self.arguments.argnums))
            y_dot = forward(self.arguments.tangents(every), *self.arguments(arrays))
            return make_tuple(self.value.parts(y_dot))

        extend.defvjp_argnums(run, pulls)
        extend.defjvp_argnums(run, pushes)
        return run


def _is_inexact(x: Any) -> bool:
    if isinstance(x, (np.ndarray, np.generic)):
        return x.dtype.kind in "fc"
    return isinstance(x, (float, complex))


def _opened(x: Any) -> Any:
    """A structure with Python's containers in place of autograd's boxes of them."""
    builtins = peer("autograd.builtins", "autograd")
    if isinstance(x, builtins.DictBox):
        return {key: _opened(x[key]) for key in x}
    if isinstance(x, builtins.SequenceBox):
        parts = [_opened(x[k]) for k in range(len(x))]
        return parts if isinstance(x._value, list) else tuple(parts)  # noqa: SLF001
    if type(x) in (tuple, list):
        return type(x)([_opened(part) for part in x])
    if type(x) is dict:
        return {key: _opened(part) for key, part in x.items()}
    return x
