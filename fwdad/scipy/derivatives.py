"""The derivatives that solvers ask for, each evaluated as it is, and as a function to be compiled.

A derivative tells in words how it is taken, once it was: the library chooses forward or reverse
mode at the first call, and that choice stays.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from fwdad.api.transforms import grad, jacfwd
from fwdad.drivers.jacobian import value_and_jacobian
from fwdad.drivers.jitted_function import Jitted
from fwdad.drivers.linearize import linearize
from fwdad.drivers.strategy import Choice, Watch
from fwdad.errors import NonScalarOutputError
from fwdad.evaluation.evaluators import jvp
from fwdad.evaluation.signatures import Mode
from fwdad.scipy.programs import number_of

Function = Callable[..., Any]

FEW = 64
"""Unknowns up to which a Hessian is a matrix, by one run of directions; from there on products."""


class Evaluated(ABC):
    """A derivative of ``f``, to be called with f's arguments.

    ``kind`` tells it from other derivatives of f; the arguments at ``argnums`` must be floats.
    """

    f: Any
    kind: tuple[Any, ...]
    argnums: tuple[int, ...] = (0,)

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivative, without compilation."""

    @abstractmethod
    def how(self) -> str:
        """How it is taken, after the first call."""

    @abstractmethod
    def to_compile(self) -> Function | None:
        """The same as a function for ``jit``; None where there is none."""


def _choices(f: Function, *args: Any, **kwargs: Any) -> tuple[Any, list[Choice]]:
    """The value of a function, and the choices that were made on the way."""
    with Watch() as watch, watch:
        value = f(*args, **kwargs)
    return value, watch.choices


def _because(choice: Choice) -> str:
    """Why not by the first candidate, in a few words."""
    if not choice.why_not:
        return ""
    first = choice.why_not[0]
    what = "" if first.error is None else "the function cannot be traced: "
    return f", because {what}{first.reason.partition(chr(10))[0]}"


def _counted(count: int, what: str) -> str:
    return f"1 {what}" if count == 1 else f"{count} {what}s"


class Jacobian(Evaluated):
    """The matrix ``(size of y, size of x)``, by rows or by columns."""

    def __init__(
        self, f: Function, argnums: tuple[int, ...] = (0,), *, holomorphic: bool = False
    ) -> None:
        self.f = f
        self.argnums = argnums
        self.holomorphic = holomorphic
        self.kind = ("jacobian", argnums, holomorphic)
        self._mode: Mode = "auto"
        self._how = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix at some arguments of f."""
        if self._mode != "auto":
            return self._matrix(self._mode)(*args, **kwargs)
        J, choices = _choices(self._matrix("auto"), *args, **kwargs)
        choice = next((c for c in choices if c.what == "jacobian"), None)
        rows = choice is not None and choice.taken == "rows"
        self._mode = "reverse" if rows else "forward"
        if choice is not None:
            self._how = _by_rows(*J.shape) if rows else _by_columns(J.shape[1], choice)
        return J

    def how(self) -> str:
        """See :class:`Evaluated`."""
        return self._how or "a dense matrix"

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        return self._matrix(self._mode)

    def _matrix(self, mode: Mode) -> Function:
        f, argnums, holomorphic = self.f, self.argnums, self.holomorphic

        def matrix(x: Any, *args: Any, **kwargs: Any) -> Any:
            return value_and_jacobian(
                f, x, args=args, kwargs=kwargs, argnums=argnums, mode=mode,
                holomorphic=holomorphic, stack=True,
            )[1]  # fmt: skip

        return matrix


def _by_rows(rows: int, columns: int) -> str:
    has = f"{_counted(rows, 'row')} and {_counted(columns, 'column')}"
    return (
        f"a dense matrix, by reverse mode with {_counted(rows, 'cotangent')}, because it has {has}"
    )


def _by_columns(columns: int, choice: Choice) -> str:
    return f"a dense matrix, by forward mode with {_counted(columns, 'tangent')}{_because(choice)}"


class Slope(Evaluated):
    """The derivative of a function of one number."""

    def __init__(self, f: Function, *, holomorphic: bool = False) -> None:
        self.f = f
        self.kind = ("slope", holomorphic)
        self._slope = jacfwd(f, holomorphic=holomorphic)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The slope at some arguments of f."""
        return self._slope(*args, **kwargs)

    def how(self) -> str:
        """See :class:`Evaluated`."""
        return "a number, by forward mode with 1 tangent"

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        return self._slope


class Gradient(Evaluated):
    """The gradient of a function whose value is one number, or holds one."""

    kind: tuple[Any, ...] = ("gradient",)

    def __init__(self, f: Function) -> None:
        self.f = f
        self.of = grad(f)
        self._how = ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient at some arguments of f."""
        if self._how:
            return self.of(*args, **kwargs)
        try:
            gradient, choices = _choices(self.of, *args, **kwargs)
        except NonScalarOutputError:
            if np.size(self.f(*args, **kwargs)) != 1:
                raise
            self.of = grad(number_of(self.f))  # SciPy takes [y] for y
            gradient, choices = _choices(self.of, *args, **kwargs)
        choice = next((c for c in choices if c.what == "gradient"), None)
        self._how = _by_reverse_mode(choice)
        return gradient

    def how(self) -> str:
        """See :class:`Evaluated`."""
        return self._how or _by_reverse_mode(None)

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        return self.of


def _by_reverse_mode(choice: Choice | None) -> str:
    why = "" if choice is None else _because(choice)
    return f"the gradient, by reverse mode{why and ', recorded at each call'}{why}"


class Hessian(Evaluated):
    """The matrix of second derivatives, as the Jacobian of a gradient."""

    def __init__(self, gradient: Gradient | Function) -> None:
        self._gradient = gradient
        self.f = gradient.f if isinstance(gradient, Gradient) else gradient
        self.kind = ("hessian", isinstance(gradient, Gradient))
        self._size = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix at some arguments of f."""
        if isinstance(self._gradient, Gradient) and not self._size:
            self._gradient(*args, **kwargs)  # finds out whether f's value is a number
        self._size = np.size(args[0])
        return self.to_compile()(*args, **kwargs)

    def how(self) -> str:
        """See :class:`Evaluated`."""
        tangents = _counted(self._size, "tangent")
        return f"a dense matrix, by forward mode with {tangents} {_over(self._gradient)}"

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        return jacfwd(_gradient_of(self._gradient), stack=True)


class HessianProduct(Evaluated):
    """The Hessian times a direction: ``product(x, p, *args)``."""

    argnums = (0, 1)

    def __init__(self, gradient: Gradient | Function) -> None:
        self._gradient = gradient
        self.f = gradient.f if isinstance(gradient, Gradient) else gradient
        self.kind = ("hessian product", isinstance(gradient, Gradient))
        self._seen = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The product at some arguments, of which the second is the direction."""
        if isinstance(self._gradient, Gradient) and not self._seen:
            self._gradient(args[0], *args[2:])
        self._seen = True
        return np.asarray(self.to_compile()(*args, **kwargs))

    def how(self) -> str:
        """See :class:`Evaluated`."""
        return (
            "the product of the Hessian and a vector, by forward mode with 1 tangent "
            f"{_over(self._gradient)}, because there are more than {FEW} unknowns"
        )

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        gradient = _gradient_of(self._gradient)

        def product(x: Any, p: Any, *args: Any) -> Any:
            return jvp(gradient, x, p, args=args)[1]

        return product


def _over(gradient: Gradient | Function) -> str:
    if isinstance(gradient, Gradient):
        return "over the gradient by reverse mode"
    return "over the gradient that was given"


def _gradient_of(gradient: Gradient | Function) -> Function:
    return gradient.of if isinstance(gradient, Gradient) else gradient


class JacobianOperator(Evaluated):
    """The Jacobian as a ``LinearOperator``, from a tape of f."""

    kind = ("operator",)

    def __init__(self, f: Function) -> None:
        self.f = f

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The operator at some arguments of f."""
        return linearize(self.f, args[0], args=args[1:], kwargs=kwargs)[1]

    def how(self) -> str:
        """See :class:`Evaluated`."""
        jitted = isinstance(self.f, Jitted)
        runs = "as fwdad.jit runs it" if jitted else "by NumPy (under fwdad.jit compiled)"
        return (
            "a LinearOperator, because the solver needs products only: each is one run of the "
            f"function's tape, forward or backward, {runs}"
        )

    def to_compile(self) -> None:
        """A tape is run, which is compiled where f is under ``jit``."""


class PointwiseJacobian(Evaluated):
    """The Jacobians of f at each point of a mesh, where f is evaluated at all of them at once.

    ``(x, y)`` or ``(x, y, p)`` with y of shape ``(n, m)``: ``df_dy`` of shape ``(n, n, m)``, and
    with parameters ``df_dp`` of shape ``(n, k, m)``. A column of f's value depends on the same
    column of y alone, so that one direction moves all columns.
    """

    def __init__(self, f: Function, *, parameters: bool) -> None:
        self.f = f
        self.argnums = (1, 2) if parameters else (1,)
        self.kind = ("pointwise", parameters)
        self._directions = 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The Jacobians at the points of the mesh."""
        self._directions = len(args[1]) + (len(args[2]) if len(args) > 2 else 0)
        return self.to_compile()(*args, **kwargs)

    def how(self) -> str:
        """See :class:`Evaluated`."""
        return (
            "a matrix for each point of the mesh, all at once by forward mode with "
            f"{_counted(self._directions, 'tangent')}"
        )

    def to_compile(self) -> Function:
        """See :class:`Evaluated`."""
        f = self.f

        def of_y(x: Any, y: Any, *p: Any) -> Any:
            n = len(y)
            v = np.zeros((n, *y.shape), y.dtype)
            for j in range(n):
                v[j, j] = 1.0
            return _pushed(f, x, y, p, 1, v)

        def of_y_and_p(x: Any, y: Any, p: Any) -> Any:
            # apart, since a tape must know how many directions there are: n + k is computed
            return of_y(x, y, p), _pushed(f, x, y, (p,), 2, np.eye(len(p), dtype=y.dtype))

        return of_y_and_p if len(self.argnums) > 1 else of_y


def _pushed(f: Function, x: Any, y: Any, p: tuple[Any, ...], argnum: int, v: Any) -> Any:
    """The tangents of f in the directions v of y or p, with the lanes behind the unknowns."""
    holomorphic = bool(np.iscomplexobj(v))
    y_dot = jvp(f, x, (v,), args=(y, *p), argnums=(argnum,), holomorphic=holomorphic)[1]
    if isinstance(y_dot, (list, tuple)):  # a row for each unknown
        y_dot = np.stack([np.asarray(row) for row in y_dot], axis=1)
    return np.moveaxis(np.asarray(y_dot), 0, 1)
