"""What functions and their derivatives are to a type checker: nothing of it does anything.

``grad(f)`` returns what has the type of the argument that it is called with, so its type is that of
a call; what comes behind the argument is checked as in a call of f.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, Protocol, TypedDict, TypeVar, overload

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
T2 = TypeVar("T2")
A = TypeVar("A")
RArray = TypeVar("RArray", bound="Array")
RFloat = TypeVar("RFloat", bound=float)
R_co = TypeVar("R_co", covariant=True)
A_co = TypeVar("A_co", covariant=True)
D = TypeVar("D", bound=np.dtype[Any])

Array = np.ndarray[Any, np.dtype[Any]]
Function = Callable[..., Any]
Argnums = int | Sequence[int]
ChunkSize = int | Literal["auto"] | None
Mode = Literal["auto", "forward", "reverse"]
Outputs = Literal["returned", "mutated", "both"]
SparseFormat = Literal["csr", "csc", "coo", "bsr", "dia", "dense"]
Backend = Literal["auto", "numpy", "numba"]


class Arguments(TypedDict, total=False):
    """Further arguments of f, behind x."""

    args: Any
    kwargs: dict[str, Any] | None


class DerivativeOptions(Arguments, total=False):
    """The options of ``derivative``."""

    holomorphic: bool


class ChunkedArguments(Arguments, total=False):
    """The same, and how many directions travel together."""

    chunk: ChunkSize


class HolomorphicArguments(ChunkedArguments, total=False):
    """The same, for functions of complex numbers, too."""

    holomorphic: bool


class JacobianOptions(HolomorphicArguments, total=False):
    """The options of ``jacobian`` that leave the type of its result as it is."""

    mode: Mode
    argnums: int
    executor: Any
    checkpoint_to: Any


class AllJacobianOptions(HolomorphicArguments, total=False):
    """All of them."""

    mode: Mode
    argnums: Argnums
    outputs: Outputs
    has_aux: bool
    stack: bool
    sparse: Any
    format: SparseFormat
    check: bool
    out: Any
    progress: bool
    executor: Any
    checkpoint_to: Any


class JvpOptions(HolomorphicArguments, total=False):
    """The options of ``jvp``."""

    out: Any
    progress: bool
    argnums: Argnums
    outputs: Outputs
    has_aux: bool


class VjpOptions(ChunkedArguments, total=False):
    """The options of ``vjp``."""

    argnums: Argnums | None
    outputs: Outputs
    has_aux: bool


class Same(Protocol):
    """A decorator that leaves the type of a function as it is."""

    def __call__(self, f: Callable[P, R], /) -> Callable[P, R]: ...


class Gradient(Protocol[P]):
    """``grad(f)``."""

    @overload
    def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, out: T, **kwargs: Any) -> T: ...


class GradientOfSecond(Protocol[P]):
    """``grad(f, 1)``."""

    def __call__(self, x: Any, y: T, /, *args: P.args, **kwargs: P.kwargs) -> T: ...


class GradientOfBoth(Protocol[P]):
    """``grad(f, (0, 1))``."""

    def __call__(self, x: T, y: T2, /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, T2]: ...


class GradientAndAux(Protocol[P, A_co]):
    """``grad(f, has_aux=True)``."""

    def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, A_co]: ...


class ValueAndGradient(Protocol[P, R_co]):
    """``value_and_grad(f)``."""

    @overload
    def __call__(self, x: T, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, T]: ...
    @overload
    def __call__(self, x: Any, /, *args: Any, out: T, **kwargs: Any) -> tuple[R_co, T]: ...


class ValueAndGradientOfSecond(Protocol[P, R_co]):
    """``value_and_grad(f, 1)``."""

    def __call__(self, x: Any, y: T, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, T]: ...


class ValueAndGradientOfBoth(Protocol[P, R_co]):
    """``value_and_grad(f, (0, 1))``."""

    def __call__(
        self, x: T, y: T2, /, *args: P.args, **kwargs: P.kwargs
    ) -> tuple[R_co, tuple[T, T2]]: ...


class Hessian(Protocol[P]):
    """``hessian(f)``."""

    @overload
    def __call__(self, x: Any, /, *args: Any, out: T, **kwargs: Any) -> T: ...
    @overload
    def __call__(self, x: float, /, *args: P.args, **kwargs: P.kwargs) -> float: ...
    @overload
    def __call__(self, x: Array, /, *args: P.args, **kwargs: P.kwargs) -> Array: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class HessianProduct(Protocol[P]):
    """``hvp(f)``."""

    @overload
    def __call__(self, x: float, v: float, /, *args: P.args, **kwargs: P.kwargs) -> float: ...
    @overload
    def __call__(
        self, x: np.ndarray[Any, D], v: Array, /, *args: P.args, **kwargs: P.kwargs
    ) -> np.ndarray[Any, D]: ...
    @overload
    def __call__(self, x: Any, v: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class JacobianOfArray(Protocol[P]):
    """``jacobian(f)`` and its relatives where f returns an array."""

    @overload
    def __call__(self, x: Any, /, *args: Any, out: T, **kwargs: Any) -> T: ...
    @overload
    def __call__(self, x: float | Array, /, *args: P.args, **kwargs: P.kwargs) -> Array: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class JacobianOfNumber(Protocol[P]):
    """``jacobian(f)`` and its relatives where f returns a number."""

    @overload
    def __call__(self, x: float, /, *args: P.args, **kwargs: P.kwargs) -> float: ...
    @overload
    def __call__(self, x: Array, /, *args: P.args, **kwargs: P.kwargs) -> Array: ...
    @overload
    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class Derivative(Protocol[P]):
    """``jacobian(f)`` and its relatives where f returns something else."""

    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> Any: ...


class ValueAndJacobian(Protocol[P, R_co]):
    """``value_and_jacobian(f)``."""

    def __call__(self, x: Any, /, *args: P.args, **kwargs: P.kwargs) -> tuple[R_co, Any]: ...
