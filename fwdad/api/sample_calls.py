"""Sample calls of NumPy's and SciPy's functions: arguments at which a function with a rule runs."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from fwdad.eager.arguments import copied
from fwdad.tangents.composite import flatten
from fwdad.tangents.seeds import leaf_dtype, leaf_shape

# no ties, no zeros, inside the domain of most functions (0, 1), and a matrix far from singular ones
_VECTOR = np.array([0.3, 0.55, 0.7])
_OTHER = np.array([0.45, 0.25, 0.9])
_MATRIX = np.array([[2.0, 0.3, 0.1], [0.2, 1.5, 0.4], [0.35, 0.15, 1.8]])
_SYMMETRIC = np.array([[2.0, 0.3, 0.1], [0.3, 1.5, 0.4], [0.1, 0.4, 1.8]])
_NUMBERS = (0.6, 0.35, 0.8)
_ALIKE = (_VECTOR, _OTHER, _VECTOR[::-1].copy(), _OTHER[::-1].copy())


def _candidates() -> Iterator[tuple[Any, ...]]:
    """Arguments that functions of arrays take, the commonest first."""
    yield ("ij,j->i", _MATRIX, _VECTOR)
    yield (_VECTOR,)
    yield (_MATRIX,)
    yield (_SYMMETRIC,)
    yield (_NUMBERS[0],)
    yield (1.0 + _VECTOR,)
    yield (1.0 + _NUMBERS[0],)
    for count in (2, 3, 4):
        yield _ALIKE[:count]
        yield _NUMBERS[:count]
    yield (_MATRIX, _VECTOR)
    yield (_SYMMETRIC, _VECTOR)
    yield (_MATRIX, _SYMMETRIC)
    yield (_MATRIX, _SYMMETRIC, _MATRIX.T.copy())
    yield ((_SYMMETRIC, True), _VECTOR)
    yield ((_MATRIX, np.arange(3)), _VECTOR)
    yield ((1, 1), _SYMMETRIC, _VECTOR)
    yield ([_VECTOR, _OTHER],)
    yield ([_MATRIX, _SYMMETRIC],)
    yield (np.eye(4).reshape(2, 2, 2, 2) + 0.1,)
    yield (_VECTOR + 0.2j,)
    yield (_MATRIX + 0.2j,)
    for first, more in itertools.product((_VECTOR, _MATRIX, _NUMBERS[0]), _OPTIONS):
        yield (first, *more)
    for first in (2, np.array([1, 2, 3]), np.array([True, False, True]), "ii->i"):
        yield first, _VECTOR
        yield first, _MATRIX
        yield first, _VECTOR, _OTHER
        yield first, _NUMBERS[0]
    yield (_VECTOR > 0.5, _VECTOR, _OTHER)
    yield (np.array([0.5, 1.2]), _VECTOR.cumsum(), _OTHER)  # interp


_OPTIONS: tuple[tuple[Any, ...], ...] = (
    (2,), (0,), (0, 1), ((0, 1),), ((1, 0),), ((3, 1),), ((9,),), ((2, 3),), (np.array([0, 2]),),
    (np.array([0, 2]), 0), (np.array([0, 2, 1]), _OTHER), ((2, 2), 0.0), (1, 1), (0.5,), (1, 0.5),
    (np.array([[0], [1], [2]]), 0), ([1], 0), (np.float64,), (_OTHER, 2),
)  # fmt: skip


@dataclass(frozen=True)
class SampleCall:
    """A function with arguments; ``active`` are the positions of those that hold floats.

    The others are constants of a program that is traced through it, as they are where users write
    them: a tuple's items would be numbers that are known at run time only.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    active: tuple[int, ...]

    def __str__(self) -> str:
        named = [f"{name}={_described(x)}" for name, x in self.kwargs.items()]
        return ", ".join([*map(_described, self.args), *named])

    def copied(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, for a call that may write into them."""
        return tuple(map(copied, self.args)), {key: copied(x) for key, x in self.kwargs.items()}

    def of_active(self, *numbers: Any) -> Any:
        """A call with other numbers."""
        filled = list(self.args)
        for k, x in zip(self.active, numbers, strict=True):
            filled[k] = x
        return self.function(*filled, **self.kwargs)


def call_with(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> SampleCall:
    """A call of a function with these arguments."""
    active = tuple(k for k, x in enumerate(args) if _holds_floats(x))
    return SampleCall(function, args, kwargs, active)


def is_draw(function: Any) -> bool:
    """Whether a function draws numbers, from NumPy's own generator or from one that it is given."""
    owner = getattr(function, "__self__", None)
    home = getattr(function, "__module__", None) or type(owner).__module__
    return home.startswith("numpy.random")


def may_be_called(function: Any) -> bool:
    """Whether a call with arguments that do not fit does nothing but raise.

    Methods without their object take what they are given for one, and draws change a generator.
    """
    if isinstance(getattr(function, "__self__", None), np.ufunc):
        return True
    return "." not in getattr(function, "__qualname__", "") and not is_draw(function)


def sample_calls(function: Any, *, constant: bool) -> Iterator[SampleCall]:
    """Calls of a function that run, and return finite floats or complex numbers.

    What a function returns that is ``constant`` may be anything.
    """
    for args in _candidates():
        given = tuple(map(copied, args))
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                y = function(*given)
        except Exception:  # noqa: BLE001, S112  (whatever it raises, these arguments do not fit)
            continue
        if constant or _is_finite(y):
            yield call_with(function, args, {})


def _holds_floats(x: Any) -> bool:
    if isinstance(x, (str, type)):
        return False
    leaves, _ = flatten(x)
    return any(leaf_dtype(leaf).kind in "fc" for leaf in leaves)


def _is_finite(y: Any) -> bool:
    leaves, _ = flatten(y)
    return bool(leaves) and all(np.all(np.isfinite(leaf)) for leaf in leaves)


def _described(x: Any) -> str:
    if isinstance(x, np.ndarray):
        return f"{x.dtype}{list(leaf_shape(x))}"
    if isinstance(x, (list, tuple)):
        return f"[{', '.join(map(_described, x))}]"
    return type(x).__name__ if isinstance(x, (float, complex)) else repr(x)
