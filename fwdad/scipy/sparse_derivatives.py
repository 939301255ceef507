"""Jacobians and Hessians by the colours of their patterns, where that is cheaper than all columns.

Whether it is cannot be known before the pattern is: it is found at the first call, which takes some
tens of milliseconds, and where it has few zeros, or cannot be found, the derivative is taken
otherwise from then on.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import numpy as np

from fwdad.api.second_derivatives import hessian
from fwdad.core.fallbacks import Untraced
from fwdad.drivers.jacobian import jacobian
from fwdad.drivers.sparse.detection import Question, pattern_of
from fwdad.drivers.sparse.plans import Plan, plan_for
from fwdad.eager.run import STATE
from fwdad.errors import UnsupportedTypeError, UntraceableError
from fwdad.evaluation.signatures import SparseFormat
from fwdad.scipy.choice import Derivative
from fwdad.scipy.derivatives import Evaluated, Gradient, HessianProduct

Function = Callable[..., Any]
_SHARE_OF_LINES = 4
"""Colours pay where they are at most one in so many columns, and rows."""
_SHARE_OF_ENTRIES = 8
"""A sparse factorisation pays where at most one entry in so many may be other than zero."""


class _Found(NamedTuple):
    """Whether colours are taken, and what is said of that."""

    taken: bool
    words: str


class ByColours(Evaluated):
    """A derivative by the colours of its pattern, or else as another one takes it."""

    def __init__(self, otherwise: Evaluated, form: SparseFormat) -> None:
        self.f = otherwise.f
        self.argnums = otherwise.argnums[:1]
        self.kind = (*otherwise.kind, "by colours", form)
        self._otherwise = otherwise
        self._form = form
        self._found: _Found | None = None

    @abstractmethod
    def plan(self, args: Any, kwargs: Any) -> Plan:
        """The plan at some arguments of f."""

    @abstractmethod
    def compressed(self) -> Function:
        """What takes it by colours."""

    def pays(self, *args: Any, **kwargs: Any) -> bool:
        """Whether colours are taken, found out once; inside a derivative call they are not."""
        if STATE.run is not None:
            return False
        if self._found is None:
            self._found = self._find(args, kwargs)
        return self._found.taken

    def _find(self, args: Any, kwargs: Any) -> _Found:
        try:
            plan = self.plan(args, kwargs)
        except (UntraceableError, UnsupportedTypeError) as error:
            untraced = Untraced(self.f, error)
            with untraced.instead():
                return _Found(False, f"its pattern cannot be found: {_first_line(untraced.reason)}")
        m, n = plan.shape
        entries = plan.colouring.pattern.nnz
        if _SHARE_OF_LINES * plan.colouring.count > min(m, n):
            return _Found(False, f"its pattern has {plan.colouring.count} colours")
        if self._form != "dense" and _SHARE_OF_ENTRIES * entries > m * n:
            return _Found(False, f"its pattern has {entries} entries")
        return _Found(True, plan.in_words)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The matrix at some arguments of f."""
        if self.pays(*args, **kwargs):
            return self.compressed()(*args, **kwargs)
        return self._otherwise(*args, **kwargs)

    def how(self) -> str:
        """See :class:`Evaluated`."""
        if self._found is None:
            return self._otherwise.how()
        if not self._found.taken:
            return f"{self._otherwise.how()}; it is not sparse: {self._found.words}"
        what = "a dense matrix of few entries" if self._form == "dense" else "a sparse matrix"
        return f"{what}, by {_first_line(self._found.words)}"

    def to_compile(self) -> Function | None:
        """See :class:`Evaluated`."""
        if self._found is not None and self._found.taken:
            return self.compressed()
        return self._otherwise.to_compile()


class JacobianByColours(ByColours):
    """The Jacobian with respect to one argument."""

    def __init__(
        self, otherwise: Evaluated, form: SparseFormat, *, holomorphic: bool = False
    ) -> None:
        super().__init__(otherwise, form)
        self._holomorphic = holomorphic

    @property
    def _mode(self) -> Literal["forward", "auto"]:
        return "forward" if self._holomorphic else "auto"

    def plan(self, args: Any, kwargs: Any) -> Plan:
        """See :class:`ByColours`."""
        pattern = pattern_of(Question(self.f, self.argnums[0], args, kwargs))
        return plan_for(pattern, self._mode, self._form)

    def compressed(self) -> Function:
        """See :class:`ByColours`."""
        of: dict[str, Any] = {"argnums": self.argnums[0], "mode": self._mode}
        of |= {"holomorphic": self._holomorphic, "sparse": True, "format": self._form}
        return jacobian(self.f, **of)


class HessianByColours(ByColours):
    """The Hessian with respect to the first argument, of f or as the Jacobian of its gradient."""

    def __init__(
        self, otherwise: Evaluated, gradient: Gradient | Function, form: SparseFormat
    ) -> None:
        super().__init__(otherwise, form)
        self.argnums = (0,)
        self._gradient = gradient

    @property
    def _of(self) -> tuple[Function, bool]:
        """The function, and whether it is its Hessian that is meant."""
        if isinstance(self._gradient, Gradient):
            of: Any = self._gradient.of
            return of.__wrapped__, True
        return self._gradient, False

    def plan(self, args: Any, kwargs: Any) -> Plan:
        """See :class:`ByColours`."""
        if isinstance(self._gradient, Gradient):
            self._gradient(*args, **kwargs)  # finds out whether f's value is a number
        f, symmetric = self._of
        pattern = pattern_of(Question(f, 0, args, kwargs, hessian=symmetric))
        return plan_for(pattern, "symmetric" if symmetric else "auto", self._form)

    def compressed(self) -> Function:
        """See :class:`ByColours`."""
        f, symmetric = self._of
        derivative: Any = hessian if symmetric else jacobian
        made: Function = derivative(f, sparse=True, format=self._form)
        return made


class Products:
    """A Hessian's products: with the sparse matrix of the latest point, or else one by one."""

    def __init__(
        self, gradient: Gradient | Function, fill: Callable[[Evaluated], Derivative]
    ) -> None:
        one_by_one = HessianProduct(gradient)
        self._matrix = HessianByColours(one_by_one, gradient, "csr")
        self._one_by_one = fill(one_by_one)
        self._of_matrix = fill(self._matrix)
        self._latest: Any = None

    def __call__(self, x: Any, p: Any, *args: Any) -> Any:
        """The product at a point and f's further arguments with a direction p."""
        if not self._matrix.pays(x, *args):
            return self._one_by_one(x, p, *args)
        if self._latest is None or not _same(self._latest[0], (x, *args)):
            H = self._of_matrix(x, *args)
            self._latest = tuple(np.array(a) for a in (x, *args)), H
        return self._latest[1] @ p

    def __str__(self) -> str:
        return str(self._of_matrix if self._of_matrix.calls else self._one_by_one)


def _same(latest: tuple[Any, ...], args: tuple[Any, ...]) -> bool:
    return len(latest) == len(args) and all(map(np.array_equal, latest, args))


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
